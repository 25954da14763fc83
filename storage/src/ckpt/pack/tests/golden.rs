//! The bytes of a fixed pack. What zstd makes of a block may change with its version; all else is frozen.

use super::*;

#[test]
fn the_bytes_of_a_pack_whose_blocks_are_not_compressed() {
    let packs = MemoryPacks::default();
    let objects = [
        (ObjectKind::Data, b"abc".to_vec()),
        (ObjectKind::Node, vec![0]),
        (ObjectKind::Data, Vec::new()),
        (ObjectKind::Data, b"defg".to_vec()),
    ];
    Store::of(packs.clone()).store(PackId(*b"0123456789abcdef"), &objects);
    let bytes = packs.bytes(&PackId(*b"0123456789abcdef"));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        // Header: magic, version, id.
        "636f667061636b0a010000000000000030313233343536373839616263646566",
        // A block: encoding, raw and stored length, checksum, payload.
        "0000000007000000070000004532fac838ed6bcb79366d899df05ddb61626364656667",
        // Another one.
        "000000000100000001000000d27ff2756c6a9c6d22bb6781161343fb00",
        // Index: two blocks, of each the lengths and the number of objects.
        "02070703010101",
        // Objects: id, length and kind.
        "0c038bbaa34f7e5564a11ad6165c7b203081c283ed4ae270601e324e8acca29619",
        "48fc721fbbc172e0925fa27af1671de225ba927134802998b10a1568a188652b01",
        "8ca1be19b79b5f4b0ce796677b7363f333860fa9a286fe1c6fee3d98382c49e521",
        "fd07e5b69bfa982855889ce70a028ccba18098d71529ec8d4367bb5d86c8ac980b",
        // Trailer: place and length of the index, checksum, magic.
        "60000000000000008b00000000000000cdc9004cb972e01a77be14f73c536d53636f6670656e640a",
    ];
    assert_eq!(hex, expected.concat());
}
