//! The configuration of tasks.

use cofferdam_tests::host::Core;

use super::{site, with_either_core};

with_either_core! {
    settings_are_kept_and_what_is_adjusted_or_refused_is_said
}

fn settings_are_kept_and_what_is_adjusted_or_refused_is_said(core: Core) {
    let site = site(core);
    let daemon = site.start();
    let adjusted = site.run(&["config", "set", "maxConcurrent=99", "allowedTools=bash,read", "nothing=1"]);
    assert_eq!(adjusted.code, 0, "{adjusted:?}");
    assert_eq!(adjusted.stdout, "allowedTools = bash,read\nmaxConcurrent = 8\n");
    assert!(adjusted.stderr.contains("nothing: there is no such key; ignored"), "{adjusted:?}");
    let home = site.path("home");
    let refused = site.run(&["config", "set", &format!("sandboxRoot={}", home.display())]);
    assert!(refused.code == 1 && refused.stderr.contains("ROOT_PROTECTED"), "{refused:?}");
    // As a shell leaves it that expands nothing, and relative to where the user is.
    let below = home.join("pods");
    for (given, root) in [("~/pods", below.clone()), ("home/pods", below), ("pods/../pods", site.root())] {
        let told = site.ok(&["config", "set", &format!("sandboxRoot={given}")]);
        assert_eq!(told, format!("sandboxRoot = {}\n", root.display()));
    }
    assert_eq!(daemon.stop().0, 0);
    let _daemon = site.start();
    assert_eq!(site.ok(&["config", "get", "maxConcurrent"]), "8\n");
    assert_eq!(site.ok(&["config", "get", "sandboxRoot"]), format!("{}\n", site.root().display()));
}
