#!/usr/bin/env python3
"""Make the golden files of this folder.  Needs transformers, tokenizers and jinja2; no test runs it.

tok/             a byte-level BPE tokenizer with the special tokens of ChatML and Llama 3, as a model folder
render.jsonl     conversations through every template of templates/: {template, vars, messages, prompt, text, ids} or {..., error: true};
                 ids with special tokens parsed (no content holds any), and, where the template marks its answers, mask, as transformers makes it
"""
import json
import os

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers import AddedToken
from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

here = os.path.dirname(os.path.abspath(__file__))
os.chdir(here)

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
TEXT = """You are a helpful AI assistant named SmolLM, trained by Hugging Face. The user asks and the assistant answers, system and all.
Hello world, hello there. What is the capital of France? The capital of France is Paris. Yes, no, yes; how many are there? 1 2 3.
Below is an instruction that describes a task. Write a response that appropriately completes the request. Cutting Knowledge Date.
"""


def make_tokenizer():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=480, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  special_tokens=[AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    tok.train_from_iterator(TEXT.splitlines() * 8, trainer)
    os.makedirs("tok", exist_ok=True)
    tok.save("tok/tokenizer.json")
    with open("tok/tokenizer_config.json", "w") as f:
        json.dump({"bos_token": "<|begin_of_text|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
                   "add_bos_token": False, "tokenizer_class": "PreTrainedTokenizerFast"}, f, indent=1)
        f.write("\n")
    return tok


def m(*turns):
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[r], "content": c} for r, c in turns]


CONVERSATIONS = [
    m(("u", "Hello"), ("a", "Hi there.")),
    m(("s", "Be brief."), ("u", "Hello"), ("a", "Hi.")),
    m(("u", "yes"), ("a", "yes"), ("u", "no"), ("a", "yes")),
    m(("s", "S"), ("u", "1"), ("a", "2"), ("u", "3"), ("a", "4"), ("u", "5"), ("a", "6")),
    m(("u", "  \n space around \t\r\n "), ("a", "\n\n x \n")),
    m(("s", " \u00a0\u3000trim me\u2003\u200b\u2028 "), ("u", "\x1cfs\x1f \x85 nel\u205f"), ("a", "\u180emvs\ufeff")),
    m(("u", "\u00e9 e\u0301 \u4f60\u597d \U0001f999 \U0001faf8"), ("a", "\U0001f468\u200d\U0001f469\u200d\U0001f467 ok \u2029")),
    m(("u", ""), ("a", "")),
    m(("s", ""), ("u", "x"), ("a", "y")),
    m(("u", "   "), ("a", " \n ")),
    m(("u", "ends with the user"),),
    m(("u", "a"), ("a", "b"), ("u", "c")),
    m(("u", "a"), ("u", "b"), ("a", "c")),
    m(("a", "starts with the assistant"), ("u", "b")),
    m(("s", "only system"),),
    m(("u", "a"), ("s", "late system"), ("a", "c")),
    m(("s", "one"), ("s", "two"), ("u", "a"), ("a", "c")),
    m(("u", "tabs\tand\x00nul\x07bell \"quotes\" 'single' {{ braces }} {% x %}"), ("a", "back\\slash </s>")),
    m(("u", "a\r\nb\rc\u0085d"), ("a", "```c\nint x;\n```\n")),
]


def main():
    tok = make_tokenizer()
    texts = {n[:-6]: open("templates/" + n, newline="").read() for n in sorted(os.listdir("templates"))}
    with open("render.jsonl", "w") as out:
        for name, text in texts.items():
            template = _compile_jinja_template(text)
            dated = "date_string" in text
            for variables in [{}, {"date_string": "03 Mar 2021"}] if dated else [{}]:
                for messages in CONVERSATIONS:
                    for prompt in (False, True):
                        row = {"template": name, "vars": variables, "messages": messages, "prompt": prompt}
                        # The clock must not decide: without date_string the template's own default is what counts.
                        fixed = {"date_string": "26 Jul 2024"} if dated else {}
                        values = {"tools": None, "documents": None, "add_generation_prompt": prompt, "bos_token": "<|begin_of_text|>",
                                  "eos_token": "<|endoftext|>", **fixed, **variables}
                        try:
                            if "generation %}" in text:
                                (row["text"],), (spans,) = render_jinja_template([messages], chat_template=text,
                                    return_assistant_tokens_mask=True, **{k: v for k, v in values.items() if v is not None})
                            else:
                                row["text"], spans = template.render(messages=messages, **values), None
                            got = tok.encode(row["text"], add_special_tokens=False)
                            row["ids"] = got.ids
                            if spans is not None:
                                row["mask"] = [int(any(b < end and e > begin for begin, end in spans)) for b, e in got.offsets]
                        except TemplateError as e:
                            assert "alternate" in str(e), e
                            row["error"] = True
                        out.write(json.dumps(row, ensure_ascii=prompt) + "\n")


main()
