#!/usr/bin/env bash
# Fetch a model from the Hugging Face hub: ORG/NAME into DIR (default: NAME).
# Goes on after an interruption; the SHA-256 of each large file is checked.  HF_ENDPOINT: another hub;
# HF_TOKEN: for gated models; HF_REVISION: a branch, tag or commit.
. "$(dirname "$0")/lib.bash"
usage 'download.sh ORG/NAME [DIR]' "$@"
for p in curl jq sha256sum; do command -v "$p" >/dev/null || die "$p is not installed"; done
repo=$1 dir=${2:-${1##*/}} hub=${HF_ENDPOINT:-https://huggingface.co} rev=${HF_REVISION:-main}
[[ $repo =~ ^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$ ]] || die "'$repo' is not of the form ORG/NAME"
fail() { echo "download.sh: ${*:2}" >&2; exit "$1"; }
get() { # URL ARGS...: the token goes through a file descriptor, so that no process list shows it
	curl -fsSL --retry 3 "${@:2}" -K <([ -z "${HF_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN") "$1"
}
good() { # FILE SIZE SHA256|-
	[ -e "$1" ] && [ "$(stat -c %s "$1")" = "$2" ] && { [ "$3" = - ] || [ "$(sha256sum <"$1" | cut -c1-64)" = "$3" ]; }
}
list=$(get "$hub/api/models/$repo/tree/$rev") || fail 66 "cannot list $repo at $hub (a wrong name? a gated model: set HF_TOKEN)"
# Weights as safetensors and the small files beside them; pickled weights are never fetched.
files=$(jq -r '.[] | select(.type == "file" and (.path | test("^[A-Za-z0-9_-][A-Za-z0-9._-]*$")))
	| select(.path | test("\\.(safetensors|json|jinja|txt|model)$|^LICENSE")) | [.path, .size, (.lfs.oid // "-")] | @tsv' <<<"$list")
grep -q 'safetensors' <<<"$files" || fail 65 "$repo has no safetensors files"
mkdir -p "$dir"
while IFS=$'\t' read -r file size oid; do
	if good "$dir/$file" "$size" "$oid"; then echo "have $file" >&2; continue; fi
	printf '+ %s (%s bytes)\n' "$file" "$size" >&2
	part=$dir/.$file.part
	if [ -e "$part" ] && [ "$(stat -c %s "$part")" -ge "$size" ]; then rm -f "$part"; fi
	get "$hub/$repo/resolve/$rev/$file" -C - -o "$part" || fail 74 "'$file' broke off; run again to go on"
	good "$part" "$size" "$oid" || { rm -f "$part"; fail 65 "'$file' is damaged (its size or SHA-256 is wrong); run again"; }
	mv "$part" "$dir/$file"
done <<<"$files"
echo "done: $dir (next: tune-ckpt inspect $dir)" >&2
