"""An oracle judges a plan's answers, and none of them may come from its own rows."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.plans.lock import lock_plan
from perfdb_git.plans.oracle_comparison import (
    ComponentError,
    OracleComparison,
    OracleGates,
    compare_with_oracle,
)
from perfdb_git.plans.resolving import resolve_plan
from perfdb_git.providers.protocol import CostProvider
from perfdb_git.resolution.resolver import CostResolver
from perfdb_git.workloads.vidur_baseline import (
    FinishedEstimate,
    FinishedEstimates,
    ProfiledRow,
    VidurProfileBaseline,
)
from tests.cli.evidence import Evidence, envelope
from tests.plans.oracle_evidence import (
    DOWN,
    LLAMA,
    NORM,
    UP,
    commit_step,
    import_mlp,
    milliseconds,
    mlp_csv,
)
from tests.plans.plan_evidence import plan, put_plan, query, snapshot

TOKENS = (4, 8, 16, 32)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def compared(evidence: Evidence, *oracles: Path, **gates: float) -> OracleComparison:
    return compare_with_oracle(snapshot(evidence), "step", oracles, gates=OracleGates(**gates))


def component(found: OracleComparison, name: str) -> ComponentError:
    return next(item for item in found.components if item.name == name)


@pytest.fixture
def imported(evidence: Evidence, tmp_path: Path) -> Path:
    """The oracle's whole table is evidence; its path."""
    path = import_mlp(evidence, tmp_path / "profiling", mlp_csv(TOKENS))
    commit_step(evidence)
    return path


class TestExclusion:
    def test_answers_do_not_come_from_the_oracle_itself(
        self, evidence: Evidence, imported: Path
    ) -> None:
        direct = snapshot(evidence).resolve(snapshot(evidence).query(UP))
        found = compared(evidence, imported)
        assert direct.estimate is not None
        assert direct.estimate.method == "measured"
        assert component(found, "up").measured_s == pytest.approx(
            milliseconds("mlp_up_proj", 8) / 1000
        )
        assert {item.method for item in found.components} == {"analytical"}
        assert {item.ground for item in found.isolation.record_sets} == {"source-digest"}
        assert len(found.isolation.record_sets) == 9

    def test_part_of_the_table_was_imported(self, evidence: Evidence, tmp_path: Path) -> None:
        import_mlp(evidence, tmp_path / "profiling", mlp_csv((8, 16)))
        commit_step(evidence)
        found = compared(evidence, write(tmp_path / "whole.csv", mlp_csv(TOKENS)))
        assert {item.method for item in found.components} == {"analytical"}
        assert {(item.ground, item.shared_rows) for item in found.isolation.record_sets} == {
            ("keys", 2)
        }

    def test_oracle_is_a_part_with_medians_alone(self, evidence: Evidence, imported: Path) -> None:
        part = write(imported.parents[4] / "part.csv", mlp_csv((8,), only="median"))
        found = compared(evidence, part)
        assert {item.ground for item in found.isolation.record_sets} == {"keys"}
        assert found.coverage.compared == 4
        assert component(found, "up").measured_s == pytest.approx(
            milliseconds("mlp_up_proj", 8) / 1000
        )

    def test_other_models_stay(self, evidence: Evidence, imported: Path, tmp_path: Path) -> None:
        import_mlp(evidence, tmp_path / "others", mlp_csv(TOKENS, LLAMA), model="Llama-2-7b-hf")
        evidence.commit("another model")
        excluded = compared(evidence, imported).isolation.record_sets
        assert len(excluded) == 9
        assert all("phi-2" in item.path for item in excluded)

    def test_rows_outside_the_oracle_stay(self, evidence: Evidence, tmp_path: Path) -> None:
        import_mlp(evidence, tmp_path / "profiling", mlp_csv((8, 16)))
        commit_step(evidence)
        oracle = write(tmp_path / "other.csv", mlp_csv((4,), LLAMA))
        with pytest.raises(NoEvidenceError) as caught:
            compared(evidence, oracle)
        assert caught.value.code == "nothing-compared"

    def test_answers_are_marked_and_cannot_be_locked(
        self, evidence: Evidence, imported: Path
    ) -> None:
        found = compared(evidence, imported)
        assert {item.marks for item in found.components} == {("evidence-excluded",)}
        without = snapshot(evidence).without(found.isolation.exclusion())
        with pytest.raises(UsageError) as caught:
            lock_plan(resolve_plan(without, "step"))
        assert caught.value.code == "not-reproducible"

    def test_cache_key_and_revision_tell_the_exclusion(
        self, evidence: Evidence, imported: Path
    ) -> None:
        whole = snapshot(evidence)
        without = whole.without(compared(evidence, imported).isolation.exclusion())
        keys = [side.resolve(side.query(UP)).cache_key for side in (whole, without)]
        revisions = [_recorded_revision(side) for side in (whole, without)]
        assert keys[0] != keys[1]
        assert revisions[0] != revisions[1]

    def test_without_nothing_is_the_same_question(self, evidence: Evidence, imported: Path) -> None:
        whole = snapshot(evidence)
        found = compared(evidence, imported)
        nothing = type(found.isolation.exclusion())(
            record_sets=frozenset(), calibrations=frozenset()
        )
        same = whole.without(nothing)
        assert same.resolve(same.query(UP)) == whole.resolve(whole.query(UP))


def _recorded_revision(side: DatabaseSnapshot) -> str:
    return side.provider_revisions(side.policy())["recorded-measured"]


class TestComparison:
    def test_figures(self, evidence: Evidence, imported: Path) -> None:
        found = compared(evidence, imported)
        errors = {
            item.name: item.estimate_s / item.measured_s - 1
            for item in found.components
            if item.estimate_s is not None and item.measured_s is not None
        }
        counts = {"norm": 1, "up": 3, "down": 1, "act": 1}
        measured = sum(counts[i.name] * (i.measured_s or 0) for i in found.components)
        estimated = sum(counts[i.name] * (i.estimate_s or 0) for i in found.components)
        assert found.coverage.compared == found.coverage.queries == 4
        assert found.subtotal_error_pct == pytest.approx(100 * (estimated / measured - 1))
        assert found.component_mape_pct == pytest.approx(100 * sum(map(abs, errors.values())) / 4)
        assert found.worst == max(errors, key=lambda name: abs(errors[name]))

    def test_refused_query_is_no_zero(self, evidence: Evidence, imported: Path) -> None:
        put_plan(evidence, plan(query("up", UP), query("unknown", {**DOWN, "dtype": "int4"})))
        evidence.commit("a query that nothing answers")
        found = compared(evidence, imported, min_coverage_pct=100)
        assert component(found, "unknown").estimate_s is None
        assert component(found, "unknown").error_pct is None
        assert found.coverage.compared == 1
        assert [gate.gate for gate in found.failed_gates] == ["min-coverage"]

    def test_measurement_that_is_not_there(self, evidence: Evidence, imported: Path) -> None:
        put_plan(evidence, plan(query("up", UP), query("odd", {**UP, "m": 9})))
        evidence.commit("a size between the rows")
        found = compared(evidence, imported)
        assert component(found, "odd").code == "no-row"
        assert found.coverage.measured == 1

    def test_every_failed_gate_is_listed(self, evidence: Evidence, imported: Path) -> None:
        found = compared(evidence, imported, max_subtotal_error_pct=0, max_component_mape_pct=0)
        assert [gate.gate for gate in found.failed_gates] == [
            "max-subtotal-error",
            "max-component-mape",
        ]

    def test_kind_that_the_file_does_not_tell_is_not_mixed_in(
        self, evidence: Evidence, tmp_path: Path
    ) -> None:
        # 32 tokens of the residual have as many elements as 8 tokens of the activation.
        import_mlp(evidence, tmp_path / "profiling", mlp_csv(TOKENS))
        commit_step(evidence)
        found = compared(evidence, write(tmp_path / "mlp.csv", mlp_csv(TOKENS)))
        assert component(found, "act").components == ("mlp_act",)
        assert component(found, "act").measured_s == pytest.approx(
            milliseconds("mlp_act", 8) / 1000
        )

    def test_two_devices_are_refused(self, evidence: Evidence, imported: Path) -> None:
        put_plan(evidence, plan(query("up", UP), query("b", {**UP, "device": "h100_80g"})))
        evidence.commit("two devices")
        with pytest.raises(UsageError) as caught:
            compared(evidence, imported)
        assert caught.value.code == "oracle-device"

    def test_table_of_another_kind_is_refused(self, evidence: Evidence, imported: Path) -> None:
        other = write(imported.parents[4] / "odd.csv", b"a,b\n1,2\n")
        with pytest.raises(InvalidInputError) as caught:
            compared(evidence, other)
        assert caught.value.code == "unknown-profile"


class TestBaseline:
    def finished(self, evidence: Evidence) -> FinishedEstimates:
        side = snapshot(evidence)
        return FinishedEstimates(
            estimates=tuple(
                FinishedEstimate(name=name, resolution=side.resolve(side.query(values)))
                for name, values in (("norm", NORM), ("up", UP))
            )
        )

    def test_it_is_no_provider(self) -> None:
        members = {"name", "method", "revision", "supports", "estimate", "explain"}
        assert members <= set(dir(CostProvider))
        assert members.isdisjoint(dir(VidurProfileBaseline))
        assert "finished" in get_type_hints(VidurProfileBaseline.look_up)

    def test_resolver_refuses_it(self, evidence: Evidence, tmp_path: Path) -> None:
        commit_step(evidence)
        oracle = VidurProfileBaseline({tmp_path / "mlp.csv": "0" * 64}, lambda *_: [])
        policy = snapshot(evidence).policy().policy
        with pytest.raises(TypeError, match="VidurProfileBaseline is no CostProvider"):
            CostResolver(
                {"recorded-measured": oracle},  # type: ignore[dict-item]
                policy,
                reference_time=None,
            )

    def test_file_is_opened_by_the_lookup_alone(self, evidence: Evidence, imported: Path) -> None:
        opened: list[Path] = []

        def read(_data: bytes, path: Path) -> list[ProfiledRow]:
            opened.append(path)
            return []

        missing = imported.with_name("not-there.csv")
        oracle = VidurProfileBaseline({missing: "0" * 64}, read)
        finished = self.finished(evidence)
        assert opened == []
        with pytest.raises(UsageError) as caught:
            oracle.look_up(finished)
        assert caught.value.code == "unreadable-file"

    def test_unfinished_estimates_are_refused(self) -> None:
        with pytest.raises(TypeError, match="no finished estimate"):
            FinishedEstimates(
                estimates=(FinishedEstimate(name="up", resolution=None),)  # type: ignore[arg-type]
            )

    def test_second_lookup_is_refused(self, evidence: Evidence, imported: Path) -> None:
        finished = self.finished(evidence)
        oracle = VidurProfileBaseline({}, lambda *_: [])
        oracle.look_up(finished)
        with pytest.raises(UsageError) as caught:
            oracle.look_up(finished)
        assert caught.value.code == "oracle-spent"

    def test_changed_file_is_refused(self, evidence: Evidence, imported: Path) -> None:
        oracle = VidurProfileBaseline({imported: "0" * 64}, lambda *_: [])
        with pytest.raises(InvalidInputError) as caught:
            oracle.look_up(self.finished(evidence))
        assert caught.value.code == "oracle-changed"

    def test_reads_are_recorded(self, evidence: Evidence, tmp_path: Path) -> None:
        import_mlp(evidence, tmp_path / "profiling", mlp_csv(TOKENS))
        commit_step(evidence)
        twice = mlp_csv((8, 8, 16))
        found = compared(evidence, write(tmp_path / "mlp.csv", twice))
        reads = [(read.estimate, read.component, read.row) for read in found.reads]
        assert reads == [
            ("norm", "input_layernorm", 0),
            ("norm", "input_layernorm", 1),
            ("up", "mlp_up_proj", 0),
            ("up", "mlp_up_proj", 1),
            ("down", "mlp_down_proj", 0),
            ("down", "mlp_down_proj", 1),
            ("act", "mlp_act", 0),
            ("act", "mlp_act", 1),
        ]


class TestCommand:
    def test_failed_gates_end_with_status_1(self, evidence: Evidence, imported: Path) -> None:
        done = evidence.perfdb(
            *("plan", "compare", "step", "--oracle", str(imported)),
            *("--max-subtotal-error", "0", "--max-component-mape", "0", "--json"),
        )
        value = envelope(done)
        assert done.status == 1
        assert value["status"] == "findings"
        assert [m["code"] for m in value["messages"]] == ["gate-failed", "gate-failed"]
        assert len(value["data"]["isolation"]["record_sets"]) == 9
        assert len(value["data"]["reads"]) == 4

    def test_text_lists_what_was_left_aside(self, evidence: Evidence, imported: Path) -> None:
        done = evidence.perfdb("plan", "compare", "step", "--oracle", str(imported))
        assert done.status == 0
        assert "source-digest: mlp.csv" in done.out
        assert "no calibration was trained on its rows" in done.out
        assert "4 of 4 compared" in done.out

    def test_policy_from_a_file_is_marked(
        self, evidence: Evidence, imported: Path, tmp_path: Path
    ) -> None:
        text = (evidence.path / "evidence/policies/default.yaml").read_text(encoding="utf-8")
        own = write(tmp_path / "own.yaml", text.replace("name: default", "name: own").encode())
        done = evidence.perfdb(
            *("plan", "compare", "step", "--oracle", str(imported)),
            *("--policy-file", str(own), "--json"),
        )
        value = envelope(done)["data"]
        assert (value["policy"]["name"], value["policy"]["origin"]) == ("own", "external-policy")
        assert {tuple(item["marks"]) for item in value["components"]} == {
            ("external-policy", "evidence-excluded")
        }

    def test_oracle_is_needed(self, evidence: Evidence, imported: Path) -> None:
        assert evidence.perfdb("plan", "compare", "step").status == 2
