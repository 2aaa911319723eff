# Completion for tune and its tools in bash.  Options, verbs and config keys come from the programs themselves
# (--list-options, --list-keys), so that this file never lags behind them.

_tune_words() { # WORD LIST: what of LIST begins with WORD
	local IFS=$'\n'
	mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_tune_names() { # recipes or configs, without folder and suffix
	tune ls 2>/dev/null | sed -n "s,^$1/\([^ ]*\)\.[a-z]* .*,\1,p"
}

# The words after a tool: options, its verbs first, KEY=, files.
_tune_tool() {
	local cmd=$1 cur=$2 first=$3 opts
	opts=$($cmd --list-options 2>/dev/null) || return
	case $cur in
	-*) _tune_words "$cur" "$(grep '^-' <<<"$opts")" ;;
	*=*) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "${cur#*=}") ;;
	*)
		_tune_words "$cur" "$( (( first )) && grep -v '^-' <<<"$opts")"
		if [ ${#COMPREPLY[@]} = 0 ] && [ -n "$cur" ] && grep -qx -e --print-config <<<"$opts"; then
			_tune_words "$cur" "$($cmd --list-keys 2>/dev/null | sed 's/$/=/')"
			[ ${#COMPREPLY[@]} = 0 ] || compopt -o nospace
		fi
		if [ ${#COMPREPLY[@]} = 0 ]; then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi ;;
	esac
}

_tune() {
	# '=' splits words by default; take the word as the user sees it.
	local line=${COMP_LINE:0:COMP_POINT} cur n=0 words
	read -ra words <<<"$line"
	[[ $line = *[[:space:]] ]] && words+=('')
	n=$(( ${#words[@]} - 1 ))
	cur=${words[n]}
	COMPREPLY=()
	if [ "${words[0]##*/}" != tune ]; then
		_tune_tool "${words[0]}" "$cur" "$(( n == 1 ))"
	elif [ "$n" -le 1 ]; then
		_tune_words "$cur" "$(tune --list-options 2>/dev/null; compgen -c tune- | sed 's/^tune-//')"
	else
		case ${words[1]} in
		cp) _tune_words "$cur" "$(_tune_names recipes; _tune_names configs; tune cp --list-options)" ;;
		run)
			case $n in
			2) _tune_words "$cur" "$(_tune_names recipes)" ;;
			3) _tune_words "$cur" "$(_tune_names configs)" ;;
			*) _tune_words "$cur" "$(tune validate --list-keys | sed 's/$/=/')"; compopt -o nospace ;;
			esac
			[ ${#COMPREPLY[@]} != 0 ] || { compopt -o filenames +o nospace; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); } ;;
		help) _tune_words "$cur" "config stream run $(compgen -c tune- | sed 's/^tune-//')" ;;
		ls|version|validate) _tune_tool "tune ${words[1]}" "$cur" 0 ;;
		*) _tune_tool "tune-${words[1]}" "$cur" "$(( n == 2 ))" ;;
		esac
	fi
	# Readline replaces only what follows the last '=' or ':'.
	local cut=${cur%"${cur##*[=:]}"} i
	if [ -n "$cut" ] && [[ $COMP_WORDBREAKS = *=* ]]; then
		for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$cut"}; done
	fi
}
complete -F _tune tune tune-tokenize tune-shard tune-train tune-eval tune-ckpt tune-stream
