#!/usr/bin/env bash
# The demo's rows, as prompt and completion: nine small word games (skill A), and a tenth, spelling (skill B).
# Words to train on are made up; a list of real words and some made-up ones are held out and never trained on.
. "$(dirname "$0")/lib.bash"
usage 'demo_data.sh DIR   (writes a.jsonl, b.jsonl, held_out_a.jsonl, held_out_b.jsonl)' "$@"
mkdir -p "$1"
awk -v dir="$1" '
function below(n) { x = x * 16807 % 2147483647; return x % n }   # Park and Miller: the same numbers in every awk
function letter(s) { return substr(s, below(length(s)) + 1, 1) }
function made_up(   n, i, w, cv) {
	n = 3 + below(4); cv = below(10) < 7; w = ""
	for (i = 0; i < n; i++)
		w = w letter(cv ? (i % 2 ? "aeiou" : "bcdfghjklmnprstvwz") : "abcdefghijklmnopqrstuvwxyz")
	return w
}
function new_word(   w) { do w = made_up(); while (w in held); return w }
function spell(w,   i, s) { s = toupper(substr(w, 1, 1)); for (i = 2; i <= length(w); i++) s = s "-" toupper(substr(w, i, 1)); return s }
function row(game, w) {
	if (game == 0) return json("Uppercase " w ".", toupper(w))
	if (game == 1) return json("First of " w ".", substr(w, 1, 1))
	if (game == 2) return json("Last of " w ".", substr(w, length(w)))
	if (game == 3) return json("Length of " w ".", length(w))
	if (game == 4) return json("Repeat " w ".", w " " w)
	if (game == 5) return json("Capitalize " w ".", toupper(substr(w, 1, 1)) substr(w, 2))
	if (game == 6) return json("Behead " w ".", substr(w, 2))
	if (game == 7) return json("Curtail " w ".", substr(w, 1, length(w) - 1))
	if (game == 8) return json("Quote " w ".", "\\\"" w "\\\"")
	return json("Spell " w ".", spell(w))
}
function json(q, a) { return "{\"prompt\": \"" q "\", \"completion\": \"" a "\"}" }
BEGIN { x = 20261201 }
{ for (i = 1; i <= NF; i++) if (length($i) <= 6 && !($i in held)) { held[$i] = 1; word[++n] = $i } }
END {
	for (i = 0; i < 200; i++) { do w = made_up(); while (w in held); held[w] = 1; word[++n] = w }
	for (i = 1; i <= n; i++) print row(9, word[i]) > (dir "/held_out_b.jsonl")
	for (i = 1; i <= n; i++) print row(i % 9, word[i]) > (dir "/held_out_a.jsonl")
	for (i = 0; i < 42000; i++) print row(below(9), new_word()) > (dir "/a.jsonl")
	for (i = 0; i < 6400; i++) { print row(9, new_word()) > (dir "/b.jsonl"); print row(below(9), new_word()) > (dir "/b.jsonl") }
}' "$here/demo_words.txt"
