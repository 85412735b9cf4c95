# bash completion for txnctl

_txnctl_completion() {
    local line kind value help width=0 prefix=""
    local -a values=() helps=()
    COMPREPLY=()

    # Bash breaks words at colons: it replaces only what follows the last one, as found here.
    local word="${COMP_LINE:0:COMP_POINT}"
    word="${word##* }"
    if [[ "$COMP_WORDBREAKS" == *:* && "$word" == *:* ]]; then
        prefix="${word%:*}:"
    fi

    while IFS=$'\t' read -r kind value help; do
        case "$kind" in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                value="${value#"$prefix"}"
                [[ "$value" == *" "* ]] && printf -v value '%q' "$value"
                values+=("$value")
                helps+=("$help")
                (( ${#value} > width )) && width=${#value}
                ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" _TXNCTL_COMPLETE=bash_complete "$1" 2>/dev/null)

    # What each name is, shown only where a list is shown; it must never be inserted.
    local i
    for i in "${!values[@]}"; do
        if [[ "$COMP_TYPE" == 63 && ${#values[@]} -gt 1 && -n "${helps[i]}" ]]; then
            printf -v line '%-*s  (%s)' "$width" "${values[i]}" "${helps[i]}"
            COMPREPLY+=("$line")
        else
            COMPREPLY+=("${values[i]}")
        fi
    done
}

complete -o nosort -F _txnctl_completion txnctl 2>/dev/null || complete -F _txnctl_completion txnctl
