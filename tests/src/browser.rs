//! A headless Chromium, driven through chromedriver as the WebDriver standard has it: JSON over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wire::PATIENCE;

/// How the standard calls an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Control, and all keys up again, as the standard writes them.
const CONTROL: char = '\u{e009}';
const KEYS_UP: char = '\u{e000}';

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _home: TempDir,
}

/// Where an element is looked for: a selector of CSS.
type Selector<'a> = &'a str;

impl Browser {
    /// A browser with a profile of its own; `None` where there is none, of which the test says that it is skipped.
    pub fn start() -> Option<Self> {
        let chromium =
            ["/usr/bin/chromium", "/usr/bin/google-chrome"].into_iter().find(|path| Path::new(path).exists());
        // The one beside it is of its version.
        let driver = ["/usr/bin/chromedriver", "chromedriver"]
            .into_iter()
            .find(|driver| Command::new(driver).arg("--version").output().is_ok());
        let Some((chromium, mut driver)) = chromium.zip(driver.map(Command::new)) else {
            crate::skipped(format_args!("there is no chromium with a chromedriver"));
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        driver.arg("--port=0").env("HOME", home.path()).env("TMPDIR", home.path());
        driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut driver = driver.spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            line.unwrap().split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        // Nobody reads what it says further on.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self { driver, port: port.unwrap(), session: String::new(), _home: home };
        let arguments = [
            "--headless=new",
            // Its own sandbox works for no superuser.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--lang=en-US",
            "--window-size=1280,900",
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": PATIENCE.as_millis() as u64},
        }}});
        let made = browser.request("POST", "/session", &wanted).unwrap();
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    /// Goes to an address, and returns when it is there.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.ask("url", &json!({"url": url}));
    }

    /// What a function of this body returns in the page.
    #[track_caller]
    pub fn script(&self, body: &str) -> Value {
        self.ask("execute/sync", &json!({"script": body, "args": []}))
    }

    /// The same, of a body that awaits.
    #[track_caller]
    pub fn script_async(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {body} }})().then(done, (error) => done({{failed: String(error)}}));"
        );
        let value = self.ask("execute/async", &json!({"script": script, "args": []}));
        assert!(value.get("failed").is_none(), "{value}: {body}");
        value
    }

    /// Waits until an expression is true of the page, whichever page that is by then, and returns what it is.
    #[track_caller]
    pub fn until(&self, expression: &str) -> Value {
        let script = format!(
            "const done = arguments[0], end = performance.now() + 5000;
             (function look() {{
                 let value; try {{ value = {expression}; }} catch {{ value = null; }}
                 if (value || performance.now() > end) done(value ?? null); else setTimeout(look, 20);
             }})();"
        );
        let end = Instant::now() + PATIENCE;
        loop {
            // A page that goes away while this waits is an error.
            if let Ok(value) = self.command("execute/async", &json!({"script": script, "args": []}))
                && !matches!(value, Value::Null | Value::Bool(false))
            {
                return value;
            }
            assert!(Instant::now() < end, "never came true: {expression}\n{}", self.shown());
        }
    }

    /// Waits until there is such an element, and it can be seen.
    #[track_caller]
    pub fn wait(&self, selector: Selector) {
        let selector = json!(selector);
        self.until(&format!("document.querySelector({selector})?.checkVisibility()"));
    }

    /// Waits until there is no such element.
    #[track_caller]
    pub fn gone(&self, selector: Selector) {
        self.until(&format!("!document.querySelector({})", json!(selector)));
    }

    /// Waits until an element has a text in it.
    #[track_caller]
    pub fn says(&self, selector: Selector, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.until(&format!("document.querySelector({selector})?.innerText.includes({text})"));
    }

    /// The text that a person sees in an element.
    #[track_caller]
    pub fn text(&self, selector: Selector) -> String {
        self.wait(selector);
        let text = self.script(&format!("return document.querySelector({}).innerText", json!(selector)));
        text.as_str().unwrap().to_owned()
    }

    /// How many such elements there are.
    #[track_caller]
    pub fn count(&self, selector: Selector) -> u64 {
        self.script(&format!("return document.querySelectorAll({}).length", json!(selector)))
            .as_u64()
            .unwrap()
    }

    /// Clicks what can be clicked: with the pointer, in its middle.
    #[track_caller]
    pub fn click(&self, selector: Selector) {
        let end = Instant::now() + PATIENCE;
        loop {
            self.wait(selector);
            let clicked = self
                .find(selector)
                .and_then(|element| self.command(&format!("element/{element}/click"), &json!({})));
            match clicked {
                Ok(_) => return,
                // It was drawn anew, or something is in front of it: people scroll then.
                Err(error) => {
                    assert!(Instant::now() < end, "{selector}: {error}\n{}", self.shown());
                    let selector = json!(selector);
                    self.script(&format!(
                        "document.querySelector({selector})?.scrollIntoView({{block: 'center', behavior: 'instant'}})"
                    ));
                }
            }
        }
    }

    /// Types into a field, over what was there.
    #[track_caller]
    pub fn fill(&self, selector: Selector, text: &str) {
        self.wait(selector);
        self.keys(selector, &format!("{CONTROL}a{KEYS_UP}{text}"));
    }

    /// Types keys, as the standard writes them.
    #[track_caller]
    pub fn keys(&self, selector: Selector, keys: &str) {
        self.wait(selector);
        let element = self.find(selector).unwrap();
        self.ask(&format!("element/{element}/value"), &json!({"text": keys}));
    }

    /// Presses keys, wherever the focus is.
    #[track_caller]
    pub fn press(&self, keys: &str) {
        let pressed = keys.chars().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let actions: Vec<Value> = pressed.collect();
        self.ask("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Chooses an option by its value, as the keyboard would.
    #[track_caller]
    pub fn choose(&self, selector: Selector, value: &str) {
        self.wait(selector);
        let (selector, value) = (json!(selector), json!(value));
        self.script(&format!(
            "const choice = document.querySelector({selector});
             choice.value = {value};
             for (const kind of ['input', 'change']) choice.dispatchEvent(new Event(kind, {{bubbles: true}}));"
        ));
    }

    /// Has the window be that large; a phone's has a finger instead of a pointer.
    #[track_caller]
    pub fn resize(&self, width: u32, height: u32) {
        let mobile = width < 500;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Sends a command of the protocol of Chromium's own tools.
    #[track_caller]
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.ask("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Writes a picture of the window, if this user may write there.
    pub fn picture(&self, file: &Path) {
        let picture = self.devtools("Page.captureScreenshot", &json!({"format": "png"}));
        let bytes = decoded(picture["data"].as_str().unwrap());
        // Pictures are no part of what is tested.
        let _ = std::fs::create_dir_all(file.parent().unwrap()).and_then(|()| std::fs::write(file, bytes));
    }

    /// What pages complained about since the last call: errors and warnings, a violated content policy among them.
    #[track_caller]
    pub fn complaints(&self) -> Vec<String> {
        let log = self.ask("se/log", &json!({"type": "browser"}));
        let lines = log
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["level"] != "INFO" && entry["level"] != "DEBUG");
        lines.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// The page's text, for whoever reads why a test failed.
    fn shown(&self) -> String {
        let text = self.command(
            "execute/sync",
            &json!({"script": "return location.href + '\\n' + document.body.innerText", "args": []}),
        );
        text.map_or_else(|error| error, |text| text.as_str().unwrap_or_default().to_owned())
    }

    fn find(&self, selector: Selector) -> Result<String, String> {
        let found = self.command("element", &json!({"using": "css selector", "value": selector}))?;
        Ok(found[ELEMENT].as_str().unwrap_or_default().to_owned())
    }

    #[track_caller]
    fn ask(&self, command: &str, body: &Value) -> Value {
        self.command(command, body).unwrap_or_else(|error| panic!("{command} {body:.300}: {error}"))
    }

    fn command(&self, command: &str, body: &Value) -> Result<Value, String> {
        self.request("POST", &format!("/session/{}/{command}", self.session), body)
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream =
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE + Duration::from_secs(10))).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}",
            self.port
        )
        .map_err(|error| error.to_string())?;
        // The connection is kept by the other side, whatever it is told.
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            let read = stream.read_line(&mut line).map_err(|error| error.to_string())?;
            match line.trim_end().to_ascii_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap(),
                Some(_) => {}
                None if line.starts_with("HTTP/") => {}
                None if read > 2 => return Err(format!("chromedriver says {line}")),
                None => break,
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).map_err(|error| error.to_string())?;
        let body = String::from_utf8(body).unwrap();
        let document: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        match &document["value"]["error"] {
            Value::String(error) => Err(format!("{error}: {}", document["value"]["message"])),
            _ => Ok(document["value"].clone()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.request("DELETE", &format!("/session/{}", self.session), &json!({}));
        let group = nix::unistd::Pid::from_raw(self.driver.id() as i32);
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.driver.wait();
    }
}

/// The bytes that a text in base64 stands for.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().take_while(|byte| *byte != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let number = four.iter().fold(0_u32, |number, digit| number << 6 | u32::from(*digit))
            << (6 * (4 - four.len()));
        number.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decoded(text), bytes.as_bytes(), "{text}");
        }
    }
}
