import pytest


def test_skills_that_learned_nothing(monkeypatch, capsys):
    import metric_baselines

    monkeypatch.setattr(metric_baselines, "IN_MAZE", {"n_rollouts": 12, "n_steps": 20})
    monkeypatch.setattr("sys.argv", ["metric_baselines.py", "MazeSquareA-v0", "--seeds", "1"])
    metric_baselines.main()
    header, _, *lines = capsys.readouterr().out.splitlines()
    assert header == "| | random | none | constant | untrained | untrained, with noise |"
    rows = {name.strip(" `"): values for name, *values in (line.strip("|").split("|") for line in lines)}
    random, none, constant = (float(value) for value in rows["policy_coverage"][:3])
    assert 0 < none < constant and none < random
    assert float(rows["particle_entropy"][1]) == 0 < float(rows["particle_entropy"][0])
    assert [value.strip() == "" for value in rows["on_cluster_share"]] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("arguments", "message"), [("NoSuch-v0", "NoSuch"), ("MazeSquareA-v0 --best-skills", "MazeSquareA-v0")]
)
def test_what_can_not_be_measured_is_refused(arguments, message, monkeypatch, capsys):
    import metric_baselines

    monkeypatch.setattr("sys.argv", ["metric_baselines.py", *arguments.split()])
    monkeypatch.setattr(metric_baselines, "play_and_measure", lambda *args, **kwargs: pytest.fail("something was played"))
    with pytest.raises(SystemExit) as end:
        metric_baselines.main()
    assert end.value.code == 2 and message in capsys.readouterr().err
