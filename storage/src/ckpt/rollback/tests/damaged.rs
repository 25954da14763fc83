//! A journal that was torn as it was written, and one that was damaged since: after the one nothing was begun, after the
//! other nothing that was displaced may go.

use cofferdam_tests::files;

use super::recovery::{dead_at, dying_at, scene};
use super::*;

/// The one journal there is.
struct Paper<'a> {
    lab: &'a Lab,
    op: String,
    whole: Vec<u8>,
}

impl<'a> Paper<'a> {
    fn of(lab: &'a Lab) -> Self {
        let op = journal::operations(lab.journal().as_fd()).unwrap().remove(0);
        let whole = files::read(lab.dir.path().join("journal").join(format!("{op}.journal")));
        Self { lab, op, whole }
    }

    fn write(&self, bytes: &[u8]) {
        files::write(self.lab.dir.path().join("journal").join(format!("{}.journal", self.op)), bytes);
    }

    fn read(&self) -> Result<Option<journal::Contents>> {
        journal::read(self.lab.journal().as_fd(), &self.op)
    }

    /// What it says with some bytes in place of the last ones.
    fn with(&self, bytes: &[u8]) -> Result<Option<journal::Contents>> {
        self.write(bytes);
        self.read()
    }

    /// No bit of it can turn unnoticed.
    #[track_caller]
    fn assert_no_flip_counts_for_a_crash(&self) {
        let contents = self.with(&self.whole).unwrap();
        let mut healed = 0;
        for at in 0..self.whole.len() {
            // Any bit, and one without which the byte may be zero, as if it had never been written.
            for bit in [at as u32 % 8, self.whole[at].trailing_zeros() % 8] {
                let mut flipped = self.whole.clone();
                flipped[at] ^= 1 << bit;
                match self.with(&flipped) {
                    Ok(read) => {
                        assert_eq!(read, contents, "bit {bit} of byte {at}");
                        healed += 1;
                    }
                    Err(Error::Corrupt(_) | Error::NewerFormat { .. }) => {}
                    Err(other) => panic!("bit {bit} of byte {at}: {other}"),
                }
            }
        }
        assert!(healed <= 16, "the length of the last record but the verdict is known twice: {healed}");
    }
}

#[test]
fn a_bit_that_turns_in_a_journal_never_counts_for_a_crash() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 4);
    Paper::of(&lab).assert_no_flip_counts_for_a_crash();
}

#[test]
fn a_bit_that_turns_in_a_length_counts_for_damage_wherever_sectors_end() {
    use records::{FRAME, Found, Kind, find, record};
    const AT: usize = 12;
    for len in 0..512 {
        let (begin, switch) = (record(Kind::Begin, &vec![1; len]), record(Kind::Switch, &[2; 300]));
        let mut file = [&[3; AT][..], &begin, &switch, &[0; FRAME]].concat();
        for bit in 0..64 {
            file[AT + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(find(&file, AT), Found::Damaged, "bit {bit} of the length {len}");
            file[AT + bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn nor_does_one_in_a_journal_that_has_a_verdict() {
    let (lab, target) = scene();
    let (done, _) = lab.attempt(&dying_at("rollback.done-journaled", 1), &target);
    done.unwrap();
    let paper = Paper::of(&lab);
    assert_eq!(paper.read().unwrap().unwrap().verdict, Some(Verdict::Done));
    paper.assert_no_flip_counts_for_a_crash();
}

#[test]
fn what_a_rollback_displaced_stays_when_its_journal_is_damaged() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 4);
    let (paper, before) = (Paper::of(&lab), lab.tree());
    for back in [60, 100, 200] {
        let mut flipped = paper.whole.clone();
        let at = flipped.len() - back;
        flipped[at] ^= 4;
        paper.write(&flipped);
        let recovered = lab.recover(&Disk::default());
        let why = recovered[0].outcome.as_ref().unwrap_err();
        assert!(why.contains(&format!(".cofferdam-{}", paper.op)), "{why}");
        before.assert_same(&lab.tree(), "nothing is touched");
        assert!(lab.ignored().is_empty(), "what was displaced is captured like everything else");
    }
    paper.write(&paper.whole);
    assert_eq!(lab.recover(&Disk::default())[0].outcome, Ok(Outcome::Finished));
    lab.assert_nothing_left();
}

#[test]
fn whatever_a_power_loss_leaves_out_of_the_record_of_a_switch_it_counts_for_none() {
    let lab = Lab::new();
    for n in 0..40 {
        files::write(lab.at(&format!("file-{n}")), format!("target {n}"));
    }
    let target = lab.capture();
    for n in 0..40 {
        files::write(lab.at(&format!("file-{n}")), format!("live {n}"));
    }
    dead_at(&lab, &target, "rollback.switch-journaled", 1);
    let paper = Paper::of(&lab);
    let whole = &paper.whole;
    let begun = |cut: &usize| paper.with(&whole[..*cut]).unwrap().is_some();
    let begin = (0..whole.len()).find(begun).unwrap();
    let mut sectors = 0;
    for from in (0..whole.len()).step_by(512) {
        let lost = from.max(begin)..(from + 512).min(whole.len() - 41);
        // So few bytes may have been zero before; then it counts for damage.
        if lost.len() < 16 {
            continue;
        }
        let mut torn = whole.clone();
        torn[lost.clone()].fill(0);
        for torn in [&torn[..], &torn[..lost.end]] {
            let read = paper.with(torn).unwrap().unwrap();
            assert_eq!((read.switch, read.verdict), (None, None), "{lost:?}");
        }
        // Once the verdict was written, all of it was durable.
        let done = torn.len() - 41;
        torn[done..].copy_from_slice(&records::record(records::Kind::Done, &[]));
        assert!(matches!(paper.with(&torn), Err(Error::Corrupt(_))), "{lost:?}");
        sectors += 1;
    }
    assert!(sectors > 8, "{sectors}");
    paper.write(whole);
    assert_eq!(lab.recover(&Disk::default())[0].outcome, Ok(Outcome::Finished));
}

#[test]
fn a_verdict_that_was_torn_where_a_sector_ends_counts_for_none_and_elsewhere_for_damage() {
    use records::{FRAME, Found, Kind, record, verdict};
    let done = record(Kind::Done, &[]);
    for (at, split) in [(500, 12), (512 - 40, 40), (512, 12), (0, 12)] {
        let mut file = vec![7; at];
        file.extend_from_slice(&done[..split]);
        file.resize(at + FRAME, 0);
        let expected = if (at + split) % 512 == 0 { Found::Torn } else { Found::Damaged };
        assert_eq!(verdict(&file, at), expected, "{at}, {split}");
    }
}
