//! Codes and cookies, with a clock of the test's own.

use actix_web::test::TestRequest;
use cofferdam_storage::clock::WallTime;

use super::*;

#[derive(Default)]
struct TestClock(Mutex<Duration>);

impl Clock for TestClock {
    fn wall(&self) -> WallTime {
        WallTime(0)
    }
    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

fn console() -> (Arc<TestClock>, Console) {
    let clock = Arc::new(TestClock::default());
    (Arc::clone(&clock), Console::new("127.0.0.1:4180".parse().unwrap(), clock))
}

fn code(console: &Console) -> String {
    console.login_url().split_once("/login?code=").unwrap().1.to_owned()
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

#[test]
fn a_code_is_good_once_and_for_ten_minutes() {
    let (clock, console) = console();
    let (early, late) = (code(&console), code(&console));
    *clock.0.lock().unwrap() = CODE_TIME - Duration::from_millis(1);
    assert!(console.sign_in(&early).is_some());
    assert_eq!(console.sign_in(&early), None);
    *clock.0.lock().unwrap() = CODE_TIME;
    assert_eq!(console.sign_in(&late), None);
}

#[test]
fn only_so_many_codes_wait_and_the_newest_are_good() {
    let (_, console) = console();
    let codes: Vec<_> = (0..=CODES).map(|_| code(&console)).collect();
    assert_eq!(console.sign_in(&codes[0]), None);
    for code in &codes[1..] {
        assert!(console.sign_in(code).is_some());
    }
}

#[test]
fn a_cookie_is_known_among_others_and_nothing_else_is() {
    let (_, console) = console();
    let set = console.sign_in(&code(&console)).unwrap();
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
    let other = Console::new("127.0.0.1:4180".parse().unwrap(), Arc::new(TestClock::default()));
    assert_eq!(judge(&other, &[&known]), Verdict::Unknown, "another daemon's cookie");
}

#[test]
fn so_many_browsers_are_signed_in_and_the_first_one_goes_first() {
    let (_, console) = console();
    let cookies: Vec<_> =
        (0..=BROWSERS).map(|_| cookie(&console.sign_in(&code(&console)).unwrap())).collect();
    assert_eq!(judge(&console, &[&cookies[0]]), Verdict::Unknown);
    assert_eq!(judge(&console, &[&cookies[1]]), Verdict::Authenticated);
    assert_eq!(judge(&console, &[cookies.last().unwrap()]), Verdict::Authenticated);
}
