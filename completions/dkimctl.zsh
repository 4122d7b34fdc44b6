#compdef dkimctl

_dkimctl_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _DKIMCTL_COMPLETE=complete_zsh dkimctl)
}

compdef _dkimctl_completion dkimctl

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dkimctl_completion "$@"; fi
