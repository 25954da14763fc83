//! The pictures of the README, as the test run makes them: in `target/pictures`, and in the directory that
//! `COFFERDAM_PICTURES` names, such as `web/pictures`.

use std::fs;

use cofferdam_tests::files;
use cofferdam_tests::host::HostSite;

use super::*;

/// The most bytes of a picture that the repository keeps.
const MOST: u64 = 128 << 10;

/// An agent that says and does what is seen.
const AGENT: &str = r#"
said() { printf '{"type":"assistant","message":{"role":"assistant","content":[%s]}}\n' "$1"; }
text() { said "{\"type\":\"text\",\"text\":\"$1\"}"; }
think() { said "{\"type\":\"thinking\",\"thinking\":\"$1\"}"; }
call() { said "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"$1\",\"input\":{\"$2\":\"$3\"}}"; }
gave() { printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}}\n' "$1"; }
end() { printf '{"type":"result","subtype":"success","is_error":%s,"result":"%s"}\n' "$1" "$2"; }
case "$1" in
    Sum*)
        think "The columns first, then the sums."
        call Read path orders.csv; gave "city,amount"
        mkdir -p charts
        echo "city,total" > summary.csv; echo "Lyon,1280.50" >> summary.csv; echo "Turin,940.00" >> summary.csv
        echo 'Orders by city' > report.md; echo "<svg/>" > charts/cities.svg
        call Write path summary.csv; gave "wrote summary.csv"
        text "Two cities. Lyon is first with 1280.50; the table is in summary.csv, and report.md explains it." ;;
    Sort*)
        call Bash command "sort -t, -k2 -n summary.csv"; gave "940.00 1280.50"
        text "Sorted, the smallest first." ;;
    *largest*)
        call Bash command "sort -t, -k2 -rn summary.csv"; gave "1280.50 940.00"
        text "Turned around: the largest first." ;;
    Find*) text "The build has no cache to look at."; end true "no such directory: .cache"; exit ;;
    Watch*) text "Waiting for the next commit."; exec sleep 600 ;;
    *) text "Done: three texts were missing, and are there now." ;;
esac
end false ""
"#;

/// Has paths of this place be called as a person's are, both ways.
fn as_at_home(place: &Path) -> String {
    format!(
        "const place = {}, home = '/home/you', asked = globalThis.fetch;
         globalThis.fetch = async (path, options = {{}}) => {{
             const body = options.body?.replaceAll(home, place);
             const answer = await asked(path, {{...options, ...(body ? {{body}} : {{}})}});
             const text = (await answer.text()).replaceAll(place, home).replace('\"inTemp\":true', '\"inTemp\":false');
             return new Response(text, {{status: answer.status, headers: answer.headers}});
         }};",
        json!(place)
    )
}

/// Makes a picture of what is shown.
fn picture(browser: &Browser, name: &str) {
    browser
        .until("!document.querySelector('main .loading, [data-toast]') && !document.getAnimations().length");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures").join(name);
    browser.picture(&file);
    // A user who may not write there has none.
    let Ok(made) = fs::metadata(&file) else { return };
    assert!((5000..MOST).contains(&made.len()), "{name}: {} bytes", made.len());
    if let Some(kept) = std::env::var_os("COFFERDAM_PICTURES") {
        let kept = Path::new(&kept);
        fs::create_dir_all(kept).and_then(|()| fs::copy(&file, kept.join(name)).map(drop)).unwrap();
    }
}

#[test]
fn pictures_are_made_of_the_board_a_task_its_export_and_its_turns() {
    let Some(browser) = Browser::start() else { return };
    let script = json!(AGENT);
    let presets = format!(
        "[[presets]]\nid = \"helper\"\nname = \"Helper\"\nargv_first = [\"sh\", \"-c\", {script}, \"sh\", \"{{prompt}}\"]\n\
         argv_follow_up = [\"sh\", \"-c\", {script}, \"sh\", \"{{prompt}}\"]\noutput = \"jsonl\"\n\
         tools = {{ Bash = \"bash\", Read = \"read\", Write = \"write\" }}\n"
    );
    let site = HostSite::new(super::super::programs(), None).with_http().with_presets(&presets);
    let daemon = site.start();
    let root = format!("sandboxRoot={}", site.root().display());
    site.ok(&["config", "set", &root, "presetId=helper", "allowedTools=bash,read,write", "maxConcurrent=1"]);
    let run = |text: &str| site.run(&["task", "run", text, "--wait"]);
    run("Find out why the build is slow");
    run("Tidy up the translations");
    run("Sum up orders.csv by city");
    let task = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    for more in ["Sort it by amount", "The largest first, please"] {
        site.ok(&["task", "tell", &task, more, "--wait"]);
    }
    site.ok(&["task", "run", "Watch the repository, review commits"]);
    site.ok(&["task", "run", "Write the notes of the next release"]);
    files::mkdir(site.path("reports"));
    let visit = Visit { site, browser };
    let (site, browser) = (&visit.site, &visit.browser);
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({"source": as_at_home(site.root().parent().unwrap())}),
    );
    browser.devtools("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
    browser.resize(1280, 750);
    visit.enter(&daemon);
    if browser.script("return document.documentElement.dataset.theme") != "light" {
        browser.click("[data-action=theme]");
    }
    browser.wait("[data-root=root]");
    browser.wait("[data-task][data-status=running] [data-testid=said]");
    visit.refresh();
    picture(browser, "board.png");
    visit.go(&format!("tasks/{task}"));
    visit.heard("the largest first");
    browser.resize(1280, 720);
    browser.script("document.querySelector('form.tell').scrollIntoView({block: 'end', behavior: 'instant'})");
    picture(browser, "task.png");
    browser.click("[data-part=files]");
    for file in ["charts", "report.md", "summary.csv"] {
        browser.click(&format!("[data-file='{file}'] input[type=checkbox]"));
    }
    browser.click("[data-action=open-export]");
    browser.fill("input[name=target]", "/home/you/reports");
    browser.click("[data-action=export]");
    browser.says("[data-confirm=export] [data-testid=plan]", "/home/you/reports");
    browser.script(
        "document.querySelector('[data-confirm=export]').scrollIntoView({block: 'end', behavior: 'instant'})",
    );
    picture(browser, "export.png");
    browser.click("[data-part=turns]");
    browser.resize(1280, 640);
    browser.click("[data-turn='3'] [data-action=rewind]");
    browser.wait("[data-confirm=rewind] [data-testid=plan]");
    picture(browser, "turns.png");
    browser.click("[data-confirm=rewind] [data-action=confirm]");
    browser.gone("[data-confirm]");
    browser.wait("[data-action=undo-rewind]");
    visit.assert_quiet();
}
