#ifndef TUNE_TRAIN_H
#define TUNE_TRAIN_H
/*
 * train: one run of tune-train.  main.c fills `opts`; run_open prepares everything; loop.c trains.
 */
#include "core/checkpoint.h"
#include "core/model.h"
#include "core/schedule.h"
#include "feed.h"
#include "libcommon/text/settings.h"
#include "libcommon/tool.h"
#include "loss/loss.h"

struct run_opts {              /* what only the command line says */
	bool resume, extend, dry_run;
	uint64_t rows_step;        /* --rows STEP; 0 = not given (steps count from 1) */
	uint64_t stop_after;       /* --stop-after N; UINT64_MAX = not given */
	const char *data;          /* DIR, STREAM or "-" */
};

struct metrics {
	struct tool *tool;
	FILE *file;                /* RUN/metrics.jsonl */
	bool to_stdout, warned;
};

struct interval {              /* since the last step line */
	double loss_sum, start_s;
	uint64_t tokens, trained, steps;
};

struct run {
	struct tool *tool;
	const struct config *cfg;
	struct run_opts o;
	const char *dir;           /* RUN */
	int lock;                  /* of RUN; -1 = none */
	char *config_json;         /* settings that must not change on a resume */
	/* what is trained */
	struct modelfile base;
	struct tokenizer *tok;
	bool gguf_tokenizer;       /* it is written anew; otherwise its files are carried along */
	struct carried carried;
	struct chat_template *chat;
	struct device *dev;
	struct comm *comm;
	struct model_opts mo;
	struct peft peft;          /* settings of the adapter that is trained; rank 0: full */
	struct plan plan;
	struct model *model;
	/* on what */
	struct feed *feed, *val;
	struct step_data data, val_data;
	long max_record;
	float *val_logp; uint8_t *val_greedy; size_t val_logp_cap, val_greedy_cap;
	/* how */
	const struct loss *loss;
	struct schedule schedule;
	struct adamw_opts adamw;
	double grad_clip;
	uint64_t batch, steps, seed;   /* steps 0 = until the stream ends */
	/* where it stands */
	bool resumed;
	struct ckpt_state s;
	/* last_saved: step of the newest checkpoint, UINT64_MAX = none */
	uint64_t start_step, last_saved, not_saved;   /* not_saved: where the last save failed */
	double last_save_s;
	struct metrics metrics;
	struct interval iv;
	struct progress progress;
};

/* setup.c: config and files -> a model that is ready to train. */
int run_open(struct run *r, struct err *err);
void run_close(struct run *r);
/*
 * settings.c: cross-checks that need no file (U5), steps from epochs, the settings that a resume
 * compares.
 */
int settings_check(const struct run *r, struct err *err);
int settings_steps(struct run *r, struct err *err);
int settings_json(struct run *r, struct err *err);
/* resume.c: continue from the newest valid checkpoint; 1 = resumed, 0 = there is none. */
int resume_find(struct run *r, char **step_dir, struct err *err);
/* Its state into r->s, if this command may go on with it; needs the data and settings_json. */
int resume_read(struct run *r, const char *step_dir, struct err *err);
/* Optimizer and stream to where they were; needs the model. */
int resume_apply(struct run *r, const char *step_dir, struct err *err);
/* loop.c: returns the exit status (0, 1, 75), or -1. */
int train(struct run *r, struct err *err);
/* validate.c */
int validate(struct run *r, double *loss, struct err *err);
int sample_answers(struct run *r, struct err *err);
/* longest prompt + answer in tokens; 0 = no prompts */
int sample_room(const struct run *r, long *longest, struct err *err);
/* save.c */
int save(struct run *r, bool best, struct err *err);   /* 0 too where save.on_error goes on */
int save_last(struct run *r, struct err *err);         /* must: nothing comes after it */
/* dryrun.c, rows.c */
int dry_run(struct run *r, struct err *err);
int print_rows(struct run *r, struct err *err);
/* signals.c */
void signals_install(void);
bool signal_seen(void);
/* metrics.c: one event a line; w is open inside the object */
int metrics_open(struct metrics *m, struct tool *t, const char *dir, struct err *err);
void metrics_begin(struct json_w *w, struct buf *b, const char *event);
/* EX_IOERR if metrics.jsonl can't be written */
int metrics_end(struct metrics *m, struct json_w *w, struct buf *b, struct err *err);
void metrics_close(struct metrics *m);
uint64_t peak_memory(void);   /* bytes, of this process */
#endif
