//! A task whose directory lies in that of another task, which puts other things in its place.

use cofferdam_storage::sandbox::Order;
use cofferdam_tests::{files, user};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::Place;
use crate::ways;

/// A task in the directory `name` of the other one, which leaves a mark there.
fn inner(place: &Place, name: &str) -> Order {
    let mut order = place.order("");
    order.task_dir = place.path("root/task").join(name);
    let program = order.program.as_mut().unwrap();
    program.cwd = order.task_dir.clone();
    program.argv = ["/bin/sh", "-c", "echo > mark; echo > \"$INNER/mark\""].map(str::to_owned).to_vec();
    program.env.push(("INNER".to_owned(), order.task_dir.to_str().unwrap().to_owned()));
    order
}

/// Fails unless nobody has touched the third task.
#[track_caller]
fn other_is_whole(place: &Place, owner: u32) {
    use std::os::unix::fs::MetadataExt;
    let names: Vec<_> = std::fs::read_dir(place.path("root/other")).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{}: {names:?}", place.way.name);
    for path in ["root/other", "root/other/secret"] {
        assert_eq!(place.path(path).metadata().unwrap().uid(), owner, "{}: {path}", place.way.name);
    }
}

#[test]
fn a_link_in_the_place_of_a_task_or_on_the_way_to_it_is_refused() {
    for way in ways() {
        let place = Place::new(way);
        let owner = if way.root { 0 } else { place.uid() };
        files::symlink("../other", place.path("root/task/inner"));
        files::symlink("..", place.path("root/task/way"));
        for name in ["inner", "way/other"] {
            let ran = place.run(&inner(&place, name));
            assert!(ran.failure().is_some_and(|text| text.contains("a link is in the way")), "{ran:?}");
        }
        other_is_whole(&place, owner);
    }
}

#[test]
fn what_is_swapped_while_a_sandbox_is_made_leads_it_nowhere_else() {
    const SWAP: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
inner, lure = [os.path.join(os.environ['TASK'], name).encode() for name in ['inner', 'lure']]
print('ready', flush=True)
while libc.renameat2(-100, inner, -100, lure, 2) == 0:
    pass
";
    for way in ways() {
        let place = Place::new(way);
        let owner = if way.root { 0 } else { place.uid() };
        files::mkdir(place.path("root/task/inner"));
        files::symlink("../other", place.path("root/task/lure"));
        if !way.root && user::is_root() {
            user::give(place.path("root/task/inner"), user::NOBODY);
        }
        let mut swapping = place.start(&place.order(SWAP));
        assert_eq!(swapping.line(), "ready");
        // It is refused whenever the link happens to be there.
        let (mut worked, mut refused) = (0, 0);
        while (worked < 2 || refused < 2) && worked + refused < 200 {
            let ran = place.run(&inner(&place, "inner"));
            *if ran.failure().is_none() { &mut worked } else { &mut refused } += 1;
            other_is_whole(&place, owner);
        }
        kill(Pid::from_raw(swapping.supervisor.id() as i32), Signal::SIGTERM).unwrap();
        swapping.finish();
        assert!(worked > 1 && refused > 1, "{}: {worked} {refused}", way.name);
        place.nothing_left();
    }
}
