//! Results of calls: read back, and nothing else.

use syscap_format::*;

fn results() -> Vec<ToolResult> {
    let leaf = |byte| Leaf::from_bytes([byte; 32]);
    let receipt = |intent| Receipt {
        home: HomeId::from_bytes([1; 32]),
        intent,
        outcome_seq: Seq::new(7),
        outcome_leaf: leaf(2),
        used: Amounts::ZERO.with(Dimension::Calls, 1),
        left: Amounts::ZERO.with(Dimension::Calls, u64::MAX).with(Dimension::WallUs, 3),
        enforcement: Enforcement::ALL[0],
    };
    let mut provenance = Provenance::new(Source::ALL[1], UnixMillis::new(5));
    provenance.claimed = Some(Source::ALL[0]);
    provenance.trace = Some(Box::from("trace"));
    provenance.inputs.extend([Seq::new(1), Seq::new(4)]);
    let full = CallFields {
        tool_id: ToolId::new("fs.read"),
        agent_id: AgentId::new("team/a"),
        state_snapshot_id: Some(SnapshotId::from_bytes([3; 32])),
        result_hash: Some(ResultHash::from_bytes([4; 32])),
        provenance: Some(provenance),
        ..CallFields::unknown()
    };
    let done = MapBuilder::new().text("text", "done").finish();
    let degraded = [
        Obligation::result_cap(9),
        Obligation::read_only(),
        Obligation::elevated(),
        Obligation::notify("page 5"),
    ];
    let mut degraded = degraded.to_vec();
    degraded.extend(Obligation::budget_cut(Dimension::DiskWriteBytes, 100));
    let refused = Refused::new(Reason::Malformed).error_object(ErrorKind::Refused);
    let ran = receipt(Some((Seq::new(6), leaf(5))));
    let (noop, none) = (TxOutcome::NoOp, Vec::new());
    let said =
        Decision { deciding: ConstraintId::new("a/no-secrets"), ..Decision::plain(Verdict::Deny) };
    let denied = CallFields { decision: Some(said), ..full.clone() };
    let no = Refused::new(Reason::Denied).error_object(ErrorKind::Refused);
    let empty = CallFields::unknown();
    [
        ToolResult::new(&full, None, done, TxOutcome::Committed, degraded, ran),
        ToolResult::new(&denied, Some(Reason::Denied), no, noop, none.clone(), receipt(None)),
        ToolResult::new(&empty, Some(Reason::Malformed), refused, noop, none, receipt(None)),
    ]
    .to_vec()
}

#[test]
fn an_answer_comes_back_as_it_went() {
    for result in results() {
        assert_eq!(ToolResult::from_canonical(&result.to_canonical()).as_ref(), Some(&result));
        let (head, delivered) = (result.head(), result.delivered().clone());
        assert_eq!(ToolResult::from_parts(head.item(), delivered.clone()), Some(result));
        // What was delivered stands apart, and nowhere else.
        for key in ["result", "error"] {
            let entries = head.item().entries().chain([(key, delivered.item())]);
            let both = entries.fold(MapBuilder::new(), |map, (key, item)| map.item(key, item));
            assert_eq!(ToolResult::from_parts(both.finish().item(), delivered.clone()), None);
        }
    }
}

#[test]
fn obligations_come_back_from_their_words() {
    let words = ["read_only 1", "result_cap", "result_cap x", "notify", "other 1", ""];
    for words in words {
        assert_eq!(Obligation::named(words), None, "{words}");
    }
    for result in results() {
        for asked in result.degraded() {
            assert_eq!(Obligation::named(&asked.to_string()).as_ref(), Some(asked));
        }
    }
}
