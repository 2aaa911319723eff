#!/usr/bin/env bash
# Draw loss, learning rate and tokens/s of one or several runs with gnuplot.
# As text on the terminal, or into FILE.png or FILE.svg with -o FILE.
. "$(dirname "$0")/lib.bash"
usage 'plot.sh [-o FILE.png|FILE.svg] RUN...' "$@"
out='' n=0 curves=()
if [ "$1" = -o ]; then [ $# -ge 3 ] || die "need -o FILE and a RUN"; out=$2; shift 2; fi
command -v gnuplot >/dev/null || die "gnuplot is not installed (Debian: gnuplot-nox); the figures are in RUN/metrics.jsonl"
command -v jq >/dev/null || die "jq is not installed"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
case $out in
'') term="set terminal dumb size ${COLUMNS:-$(tput cols 2>/dev/null || echo 80)},18 noenhanced" ;;
*.png|*.svg) term="set terminal ${out##*.} size 900,900 noenhanced; set output '$tmp/out'; set multiplot layout 3,1" ;;
*) die "the output must end in .png or .svg, not '$out'" ;;
esac
for r in "$@"; do
	m=$r n=$((n + 1)) name=$(basename "$r" | tr -d "'\\\\")
	[ ! -d "$r" ] || m=$r/metrics.jsonl
	[ -r "$m" ] || die "no metrics at '$m'"
	# After a resume, earlier lines with a larger step do not count.
	jq -rn '[inputs | select(.event | IN("step", "val", "resume"))]
		| reduce .[] as $e ([]; if $e.event == "resume" then map(select(.step <= $e.step)) else . + [$e] end)
		| .[] | [.event, .step, .loss // "NaN", .lr // "NaN", .tokens_per_s // "NaN"] | @tsv' "$m" >"$tmp/$n"
	for e in step val; do awk -v e=$e '$1 == e' "$tmp/$n" >"$tmp/$n.$e"; done
	[ -s "$tmp/$n.step" ] || die "'$m' has no steps yet"
	for c in 3:loss 4:lr 5:tokens/s; do
		curves[${c%%:*}]+="'$tmp/$n.step' using 2:${c%%:*} with lines title '$name ${c#*:}', "
	done
	[ ! -s "$tmp/$n.val" ] || curves[3]+="'$tmp/$n.val' using 2:3 with points title '$name validation', "
done
{ echo "$term"; printf 'plot %s\n' "${curves[@]%, }"; } | gnuplot
[ -z "$out" ] || mv "$tmp/out" "$out"
