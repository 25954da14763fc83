//! The configuration file: what it changes, when, and what becomes of a bad one.

use cofferdam_protocol::ckpt::{
    CleanupRetention, ConfigReport, WsCkptErrorCode as Code, WsCkptRequest, WsCkptResponse,
};
use cofferdam_tests::files;
use cofferdam_tests::site::Daemon;

use crate::site;

fn config(daemon: &Daemon) -> ConfigReport {
    match daemon.call(&WsCkptRequest::Config) {
        WsCkptResponse::ConfigOk { config } => config,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_file_is_read_at_the_start_and_again_when_asked() {
    let site = site();
    files::write(
        site.config(),
        "auto_cleanup = true\nauto_cleanup_keep = \"30d\"\nauto_cleanup_interval_secs = 60\nfuture_key = 1\n",
    );
    let daemon = site.start();
    let first = config(&daemon);
    assert!(first.auto_cleanup);
    assert_eq!(first.auto_cleanup_keep, "30d".parse().unwrap());
    assert_eq!((first.auto_cleanup_interval_secs, first.health_check_interval_secs), (60, 300));

    files::write(site.config(), "auto_cleanup_keep = 5\nhealth_check_interval_secs = 0\n");
    assert_eq!(config(&daemon), first, "nothing changes before it is asked for");
    assert_eq!(daemon.call(&WsCkptRequest::ReloadConfig), WsCkptResponse::ReloadConfigOk);
    let second = config(&daemon);
    assert!(!second.auto_cleanup);
    assert_eq!(second.auto_cleanup_keep, CleanupRetention::Count(5));
    assert_eq!((second.auto_cleanup_interval_secs, second.health_check_interval_secs), (86_400, 0));

    files::remove(site.config());
    assert_eq!(daemon.call(&WsCkptRequest::ReloadConfig), WsCkptResponse::ReloadConfigOk);
    assert_eq!(config(&daemon).auto_cleanup_keep, CleanupRetention::Count(20), "no file means the defaults");
}

#[test]
fn a_file_that_cannot_be_used_leaves_the_settings_as_they_were() {
    let site = site();
    files::write(site.config(), "auto_cleanup_keep = 7\n");
    let daemon = site.start();
    let before = config(&daemon);
    for bad in [
        "this is not toml",
        "auto_cleanup = 3\n",
        "auto_cleanup_keep = \"soon\"\n",
        "auto_cleanup_keep = -1\n",
        "auto_cleanup_interval_secs = -5\n",
        "[backend.btrfs-loop]\nimg_max_percent = 200\n",
        "[backend]\ntype = \"nonsense\"\n",
        "auto_cleanup = true\nauto_cleanup = false\n",
    ] {
        files::write(site.config(), bad);
        let (code, message) = daemon.refused(&WsCkptRequest::ReloadConfig);
        assert_eq!(code, Code::InternalError, "{bad}: {message}");
        assert!(message.starts_with("Failed to reload config: "), "{bad}: {message}");
        assert_eq!(config(&daemon), before, "{bad}");
    }
    files::write(site.config(), "auto_cleanup_keep = 8\n");
    assert_eq!(daemon.call(&WsCkptRequest::ReloadConfig), WsCkptResponse::ReloadConfigOk);
    assert_eq!(config(&daemon).auto_cleanup_keep, CleanupRetention::Count(8));
}

#[test]
fn a_daemon_starts_on_the_defaults_where_the_file_is_bad_and_warns() {
    let site = site();
    files::write(site.config(), "auto_cleanup_keep = \"soon\"\n");
    let daemon = site.start();
    assert_eq!(config(&daemon).auto_cleanup_keep, CleanupRetention::Count(20));
    let (code, stderr) = daemon.stop();
    assert_eq!(code, 0);
    assert!(stderr.contains("config.toml"), "{stderr}");
}
