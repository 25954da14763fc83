//! Codes and cookies, with a clock of the test's own.

use std::sync::Mutex;

use actix_web::test::TestRequest;
use cofferdam_storage::clock::WallTime;
use cofferdam_storage::disk::Disk;

use super::known::{BROWSERS, CODE_TIME, CODES};
use super::*;

/// The time since it was made, on both clocks.
#[derive(Default)]
struct TestClock(Mutex<Duration>);

impl Clock for TestClock {
    fn wall(&self) -> WallTime {
        WallTime(self.0.lock().unwrap().as_nanos() as i64)
    }
    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

fn console() -> (Arc<TestClock>, Console) {
    let clock = Arc::new(TestClock::default());
    (Arc::clone(&clock), Console::new("127.0.0.1:4180".parse().unwrap(), clock, None))
}

fn code(console: &Console) -> String {
    console.login_url(LinkPlace::Plain).split_once("/login?code=").unwrap().1.to_owned()
}

/// Spends a code at the address.
async fn sign_in(console: &Console, code: &str) -> Option<String> {
    let request = TestRequest::get().insert_header(("host", "127.0.0.1:4180")).to_srv_request();
    console.sign_in(request.head(), code).await
}

/// The cookie, as a browser sends it.
fn cookie(set: &str) -> String {
    set.split(';').next().unwrap().to_owned()
}

fn judge(console: &Console, headers: &[&str]) -> Verdict {
    let mut request = TestRequest::get();
    for header in headers {
        request = request.append_header(("cookie", *header));
    }
    console.judge(request.to_srv_request().head())
}

#[actix_web::test]
async fn a_code_is_good_once_and_for_ten_minutes() {
    let (clock, console) = console();
    let (early, late) = (code(&console), code(&console));
    *clock.0.lock().unwrap() = CODE_TIME - Duration::from_millis(1);
    assert!(sign_in(&console, &early).await.is_some());
    assert_eq!(sign_in(&console, &early).await, None);
    *clock.0.lock().unwrap() = CODE_TIME;
    assert_eq!(sign_in(&console, &late).await, None);
}

#[actix_web::test]
async fn only_so_many_codes_wait_and_the_newest_are_good() {
    let (_, console) = console();
    let codes: Vec<_> = (0..=CODES).map(|_| code(&console)).collect();
    assert_eq!(sign_in(&console, &codes[0]).await, None);
    for code in &codes[1..] {
        assert!(sign_in(&console, code).await.is_some());
    }
}

#[actix_web::test]
async fn a_cookie_is_known_among_others_and_nothing_else_is() {
    let (_, console) = console();
    let set = sign_in(&console, &code(&console)).await.unwrap();
    let (known, value) = (cookie(&set), cookie(&set).split_once('=').unwrap().1.to_owned());
    for headers in [
        vec![known.as_str()],
        vec!["a=b", &known],
        vec![&format!("a=b; {known};c=d")],
        // Another page of this machine can set one of that name; it makes nothing worse.
        vec![&format!("cofferdam-4180=wrong; {known}")],
    ] {
        assert_eq!(judge(&console, &headers), Verdict::Authenticated, "{headers:?}");
    }
    for headers in [
        vec![],
        vec![value.as_str()],
        vec![&format!("cofferdam-4181={value}")],
        vec![&format!("cofferdam-4180=\"{value}\"")],
        vec![&format!("cofferdam-4180={}", value.to_uppercase())],
        vec![&format!("cofferdam-4180={}", &value[..63])],
        vec![&format!("cofferdam-4180={value}0")],
        vec!["cofferdam-4180="],
        vec!["cofferdam-4180"],
    ] {
        assert_eq!(judge(&console, &headers), Verdict::Unknown, "{headers:?}");
    }
    let other = Console::new("127.0.0.1:4180".parse().unwrap(), Arc::new(TestClock::default()), None);
    assert_eq!(judge(&other, &[&known]), Verdict::Unknown, "another daemon's cookie");
}

#[actix_web::test]
async fn so_many_browsers_are_signed_in_and_the_first_one_goes_first() {
    let (_, console) = console();
    let mut cookies = Vec::new();
    for _ in 0..=BROWSERS {
        cookies.push(cookie(&sign_in(&console, &code(&console)).await.unwrap()));
    }
    assert_eq!(judge(&console, &[&cookies[0]]), Verdict::Unknown);
    assert_eq!(judge(&console, &[&cookies[1]]), Verdict::Authenticated);
    assert_eq!(judge(&console, &[cookies.last().unwrap()]), Verdict::Authenticated);
}

fn kept(dir: &std::path::Path, clock: &Arc<TestClock>) -> Console {
    let file = ConsoleFile::in_dir(Disk::default(), dir).unwrap();
    Console::new("127.0.0.1:4180".parse().unwrap(), Arc::clone(clock) as Arc<dyn Clock>, Some(file))
}

#[actix_web::test]
async fn name_and_cookies_survive_a_restart_and_no_secret_is_written() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::default()));
    let console = kept(dir.path(), &clock);
    let (waiting, spent) = (code(&console), code(&console));
    let set = sign_in(&console, &spent).await.unwrap();
    let (cookie, host) = (cookie(&set), console.host());
    drop(console);
    let text = std::fs::read_to_string(dir.path().join("console.json")).unwrap();
    let value = cookie.split_once('=').unwrap().1;
    for secret in [value, &waiting, &spent] {
        assert!(!text.contains(secret), "{text}");
    }
    let console = kept(dir.path(), &clock);
    assert_eq!(console.host(), host);
    assert_eq!(judge(&console, &[&cookie]), Verdict::Authenticated);
    assert_eq!(sign_in(&console, &waiting).await, None, "codes are of one run");
    assert_eq!(console.sign_out().await.unwrap(), 1);
    for console in [console, kept(dir.path(), &clock)] {
        assert_eq!(judge(&console, &[&cookie]), Verdict::Unknown);
        assert_eq!(console.host(), host);
    }
    std::fs::write(dir.path().join("console.json"), "{").unwrap();
    assert_ne!(kept(dir.path(), &clock).host(), host, "it starts anew");
}

#[actix_web::test]
async fn a_sign_out_that_could_not_be_written_down_says_so_and_the_next_one_is() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::default()));
    // A file does not take the place of a directory.
    let taken = dir.path().join("console.json");
    std::fs::create_dir(&taken).unwrap();
    let console = kept(dir.path(), &clock);
    let cookie = cookie(&sign_in(&console, &code(&console)).await.unwrap());
    assert!(console.sign_out().await.is_err());
    assert_eq!(judge(&console, &[&cookie]), Verdict::Unknown, "out they are");
    std::fs::remove_dir(&taken).unwrap();
    assert_eq!(console.sign_out().await.unwrap(), 0);
    assert!(taken.is_file());
}

#[actix_web::test]
async fn a_cookie_is_good_for_seven_days_after_it_was_shown_last() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::default()));
    let console = kept(dir.path(), &clock);
    let cookie = cookie(&sign_in(&console, &code(&console)).await.unwrap());
    let hours = |hours: u64| *clock.0.lock().unwrap() = Duration::from_secs(hours * 3600);
    hours(7 * 24 - 1);
    assert_eq!(judge(&console, &[&cookie]), Verdict::Authenticated);
    hours(2 * 7 * 24 - 2);
    assert_eq!(judge(&console, &[&cookie]), Verdict::Authenticated, "it was shown meanwhile");
    // That was written down.
    let noted = || std::fs::read_to_string(dir.path().join("console.json")).unwrap();
    let used = format!("\"used_ms\": {}", (2 * 7 * 24 - 2) * 3_600_000);
    while !noted().contains(&used) {
        tokio::task::yield_now().await;
    }
    let again = kept(dir.path(), &clock);
    hours(3 * 7 * 24 - 2);
    for console in [console, again] {
        assert_eq!(judge(&console, &[&cookie]), Verdict::Unknown);
    }
}

#[actix_web::test]
async fn an_address_that_no_name_leads_to_has_plain_links_alone() {
    let clock = Arc::new(TestClock::default());
    for (address, plain) in [("127.0.0.1:1", false), ("[::1]:1", false), ("127.1.2.3:1", true)] {
        let console = Console::new(address.parse().unwrap(), Arc::clone(&clock) as Arc<dyn Clock>, None);
        let named = console.login_url(LinkPlace::Named);
        assert_eq!(named.starts_with(&format!("http://{address}/")), plain, "{named}");
        let at_address = console.login_url(LinkPlace::Plain);
        assert!(at_address.starts_with(&format!("http://{address}/")), "{at_address}");
    }
}
