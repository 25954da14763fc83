//! What the test of a sandbox finds.

use std::os::unix::net::UnixListener;
use std::process::Command;

use cofferdam_protocol::pod::Probe;
use cofferdam_storage::sandbox::{Layer, LeftOut, Order, ProbeReport, Report};
use cofferdam_tests::{files, user};

use crate::place::{Place, Ran};
use crate::{Way, ways};

fn found(ran: &Ran) -> &ProbeReport {
    let found = ran.reports.iter().find_map(|report| match report {
        Report::Probe(found) => Some(found),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{ran:?}"))
}

/// An order that only tests the sandbox.
fn test_only(place: &Place) -> Order {
    Order { program: None, probe: Some(place.probe(&[place.path("daemon.sock")])), ..place.order("") }
}

#[test]
fn every_way_holds_and_says_what_it_does_not_stop() {
    for way in ways() {
        let place = Place::new(way);
        let _socket = UnixListener::bind(place.path("daemon.sock")).unwrap();
        files::chmod(place.path("daemon.sock"), 0o777);
        let ran = place.run(&test_only(&place));
        let found = found(&ran);
        assert_eq!((found.probe, found.fs_denied), (Probe::Denied, true), "{}: {ran:?}", way.name);
        let own_files = found.note.contains("times and extended attributes of the user's own files");
        assert_eq!(own_files, !way.root && !way.without.is_empty(), "{}: {}", way.name, found.note);
        let others = found.note.contains("times and extended attributes of other tasks' files");
        assert_eq!(others, way.root && !way.without.is_empty(), "{}: {}", way.name, found.note);
        assert!(found.note.contains("Landlock: version"), "{}", found.note);
        let Report::Ready { layers } = &ran.reports[0] else { panic!("{ran:?}") };
        let holds = |layer| layers.iter().any(|state| state.layer == layer && state.holds);
        assert_eq!(holds(Layer::MountNamespace), way.without.is_empty(), "{layers:?}");
        assert_eq!(holds(Layer::OtherUser), way.root, "{layers:?}");
        assert!(std::fs::read_dir(place.dir.path()).unwrap().count() == 5, "the test leaves nothing behind");
        place.nothing_left();
    }
}

#[test]
fn where_namespaces_are_forbidden_the_rest_holds_and_the_reason_is_told() {
    let place = Place::new(crate::WAYS[0]);
    // A namespace of users in which there can be no other.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "/bin/sh", "-c", script]);
    command.arg(place.program());
    let ran = place.start_by(command, &test_only(&place)).finish();
    if ran.reports.is_empty() {
        cofferdam_tests::skip!("no user namespaces here: the other tests are this one");
    }
    assert_eq!(found(&ran).probe, Probe::Denied, "{ran:?}");
    let Report::Ready { layers } = &ran.reports[0] else { panic!("{ran:?}") };
    let state = layers.iter().find(|state| state.layer == Layer::MountNamespace).unwrap();
    assert!(!state.holds && state.detail.contains("namespaces are not allowed"), "{state:?}");
}

#[test]
fn signals_that_nothing_stops_are_a_hole_and_no_program_starts() {
    let way = Way { name: "bare", root: false, without: &[LeftOut::Namespaces, LeftOut::Scopes] };
    let place = Place::new(way);
    let order = Order { program: place.order("print('here')").program, ..test_only(&place) };
    let ran = place.run(&order);
    let found = found(&ran);
    assert_eq!((found.probe, ran.stdout.as_str()), (Probe::Allowed, ""), "{ran:?}");
    assert!(found.note.contains("Signal") && found.note.contains("signals to processes"), "{}", found.note);
}

#[test]
fn without_a_place_to_compare_with_a_refusal_proves_nothing() {
    for way in ways() {
        let place = Place::new(way);
        let mut order = test_only(&place);
        order.probe.as_mut().unwrap().places = vec![place.path("nowhere"), "/proc".into()];
        let found = found(&place.run(&order)).probe;
        assert_eq!(found, Probe::Ambiguous, "{}", way.name);
    }
}

#[test]
fn a_sandbox_whose_home_cannot_be_reached_is_refused_with_what_to_do() {
    if !user::is_root() {
        cofferdam_tests::skip!("only root's tasks run as somebody else");
    }
    let place = Place::new(crate::WAYS[3]);
    files::chmod(place.path("state"), 0o700);
    let ran = place.run(&place.order("print('here')"));
    assert!(ran.failure().unwrap().contains("chmod o+x"), "{ran:?}");
    assert_eq!(ran.stdout, "");
    place.nothing_left();
}
