# shellcheck shell=bash disable=SC2086,SC2154
# The part of bash's completion that is the same for all programs. In front of it stand, made from a program's table of
# options: PROGRAM_options, all of them; PROGRAM_takes, which says what an option takes (a kind, and words; nothing
# when it takes none); PROGRAM_runs, 1 where the first word that is no option is a program with words of its own.

# Words as the user sees them: bash splits at = and : as well. `starts` are their places in COMP_WORDS.
PROGRAM_split() {
	local rest=${COMP_LINE:0:COMP_POINT} gap piece i
	words=() starts=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		gap=${rest%%[![:blank:]]*}
		rest=${rest#"$gap"}
		piece=${COMP_WORDS[i]}
		((i == COMP_CWORD)) && piece=$rest
		if [[ -n $gap || $i == 0 ]]; then
			words+=("$piece")
			starts+=("$i")
		else
			words[${#words[@]} - 1]+=$piece
		fi
		rest=${rest#"$piece"}
	done
}

# What may become of $1, by a kind and words.
PROGRAM_candidates() {
	local value=$1 kind=$2 before sign
	shift 2
	case $kind in
	words) compgen -W "$*" -- "$value" ;;
	files) compgen -f -- "$value" ;;
	programs)
		compgen -c -- "$value"
		[[ $value == */* ]] && compgen -d -- "$value"
		;;
	dirs)
		before=${value%"${value##*:}"}
		compgen -P "$before" -d -- "${value##*:}"
		compgen -W "$*" -- "$value"
		;;
	list)
		before=${value%"${value##*,}"}
		value=${value##*,}
		sign=${value%%[!+!]*}
		compgen -P "$before$sign" -W "$*" -- "${value#"$sign"}"
		;;
	esac
}

# Fills COMPREPLY with what may become of $1, without what bash takes for another word.
PROGRAM_reply() {
	local cut=${1%"${1##*[=:]}"} line
	[[ $2 == files || $2 == dirs || $2 == programs ]] && compopt -o filenames 2>/dev/null
	while IFS= read -r line; do
		COMPREPLY+=("${line#"$cut"}")
	done < <(PROGRAM_candidates "$@")
}

# Word $1 is no option: a file, or the beginning of a command line of its own. Fails when options may follow.
PROGRAM_operand() {
	local last=$((${#words[@]} - 1))
	if ((!PROGRAM_runs)); then
		(($1 < last)) && [[ ${words[$1 - 1]} != -- ]] && return 1
		PROGRAM_reply "${words[last]}" files
	elif declare -F _command_offset >/dev/null; then
		_command_offset "${starts[$1]}"
	elif (($1 == last)); then
		PROGRAM_reply "${words[last]}" programs
	else
		PROGRAM_reply "${words[last]}" files
	fi
	return 0
}

PROGRAM() {
	local words starts i takes
	COMPREPLY=()
	PROGRAM_split
	local last=$((${#words[@]} - 1))
	local current=${words[last]}
	for ((i = 1; i < last; i++)); do
		case ${words[i]} in
		--)
			PROGRAM_operand $((i + 1))
			return
			;;
		--*=*) ;;
		-?*)
			takes=$(PROGRAM_takes "${words[i]}")
			[[ -z $takes ]] && continue
			if ((++i == last)); then
				PROGRAM_reply "$current" $takes
				return
			fi
			;;
		*) PROGRAM_operand "$i" && return ;;
		esac
	done
	case $current in
	--*=*)
		takes=$(PROGRAM_takes "${current%%=*}")
		[[ -n $takes ]] && PROGRAM_reply "${current#*=}" $takes
		;;
	-*) PROGRAM_reply "$current" words "$PROGRAM_options" ;;
	*) PROGRAM_operand "$last" ;;
	esac
}
