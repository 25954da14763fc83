//! The tables as diesel sees them. What they mean stands in `migrations/ckpt`.

diesel::table! {
    workspaces (key) {
        key -> BigInt,
        id -> Text,
        path -> Binary,
        owner -> BigInt,
        identity -> Binary,
        registered_at -> BigInt,
        forgotten_at -> Nullable<BigInt>,
        last_capture -> Nullable<Binary>,
        kept -> Bool,
    }
}

diesel::table! {
    snapshots (key) {
        key -> BigInt,
        workspace -> BigInt,
        kind -> Text,
        name -> Text,
        message -> Nullable<Text>,
        metadata -> Nullable<Text>,
        pinned -> Bool,
        created_at -> BigInt,
        manifest -> Binary,
        warnings -> BigInt,
        missing -> Bool,
        applied_at -> Nullable<BigInt>,
        trashed_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    packs (key) {
        key -> BigInt,
        id -> Binary,
        state -> Text,
        bytes -> BigInt,
        objects -> BigInt,
    }
}

diesel::table! {
    objects (id) {
        id -> Binary,
        pack -> BigInt,
        block -> BigInt,
        start -> BigInt,
        length -> BigInt,
    }
}

diesel::joinable!(snapshots -> workspaces (workspace));
diesel::joinable!(objects -> packs (pack));
diesel::allow_tables_to_appear_in_same_query!(workspaces, snapshots, packs, objects);
