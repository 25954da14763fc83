//! Providers that are shell scripts.

use cofferdam_tests::session::SessionSite;

/// Counts to three, a piece a word. Stops after the first while it is held.
pub(crate) const SLOW: &str = r#"
cat > /dev/null
cat <<'END'
{"type":"message_start"}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one "}}
END
# There is nobody who writes into it.
if [ -p "$HOME/hold" ]; then echo $$ > "$HOME/pid"; read -r never < "$HOME/hold"; fi
cat <<'END'
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two "}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"three"}}
{"type":"content_block_stop","index":0}
{"type":"message_stop"}
END
"#;

/// Has the shell say hello; is done once there is a result.
pub(crate) const SHELL_CALL: &str = r#"
case "$(cat)" in
*'"role":"tool"'*) cat <<'END' ;;
{"type":"message_start"}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}
{"type":"content_block_stop","index":0}
{"type":"message_stop"}
END
*) cat <<'END' ;;
{"type":"message_start"}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Running it."}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call-1","name":"shell"}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"echo hello\"}"}}
{"type":"content_block_stop","index":1}
{"type":"message_stop"}
END
esac
"#;

/// Holds [`SLOW`] after its first word.
pub(crate) fn hold(site: &SessionSite) {
    cofferdam_tests::files::fifo(site.home().join("hold"));
}
