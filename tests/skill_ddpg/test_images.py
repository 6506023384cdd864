"""``CnnPolicy``: one encoder of images that all networks and rewards share."""

import numpy as np
import pytest
import torch as th
from batches import make_samples
from every_method import every_method
from gymnasium import spaces
from learned import assert_predict_alike, differences
from pictures import IMAGE, make_pictures, pixel_model
from small import make_small
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn
from tuning import saved

from sb3_cesd import APS, APT, DIAYN, CeSD, show_skills
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.metrics import play_and_measure, play_and_score
from sb3_cesd.skill_ddpg.images import ImageEncoder, SharedFeatures, shift_images


def test_the_encoder_is_that_of_drq_v2():
    encoder = ImageEncoder(spaces.Box(0, 255, (9, 84, 84), np.uint8))
    *convolutions, _ = encoder.convolutions
    sizes = [(each.in_channels, each.out_channels, each.kernel_size, each.stride) for each in convolutions[::2]]
    first, others = (9, 32, (3, 3), (2, 2)), (32, 32, (3, 3), (1, 1))
    assert sizes == [first, others, others, others] and all(isinstance(each, nn.ReLU) for each in convolutions[1::2])
    linear, norm, last = encoder.trunk
    assert (linear.in_features, linear.out_features, norm.normalized_shape) == (39_200, 50, (50,))
    assert isinstance(last, nn.Tanh) and encoder.shift == 4 and encoder.learns_from == "critic"
    weights = convolutions[2].weight.detach().flatten(1)
    assert th.allclose(weights @ weights.T, 2 * th.eye(32), atol=1e-5), "orthogonal, with the gain of ReLU"
    seen = []
    convolutions[0].register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    encoder(th.tensor([0, 51, 255] * 3, dtype=th.uint8)[None, :, None, None].expand(1, 9, 84, 84))
    assert th.allclose(seen[0][0, :3, 0, 0], th.tensor([-0.5, -0.3, 0.5]))
    small = ImageEncoder(spaces.Box(0, 255, (3, 48, 48), np.uint8))
    assert small.strides == (2, 2, 2) and small.shift == 2


def test_images_are_shifted_and_their_border_repeated(monkeypatch):
    image = th.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=th.uint8)
    drawn = iter([th.tensor([[[1], [-2]], [[-1], [0]]])])  # rows, then columns, of two images
    monkeypatch.setattr(th, "randint", lambda low, high, shape, **_: next(drawn))
    first, second = shift_images(th.stack([image, image + 10]).unsqueeze(1).repeat(1, 2, 1, 1), 2)
    assert first[0].tolist() == first[1].tolist() == [[4, 4, 5], [7, 7, 8], [7, 7, 8]]
    assert second.tolist() == [[[11, 12, 13]] * 3] * 2


def test_each_image_has_its_own_shift():
    images = th.arange(25, dtype=th.uint8).view(1, 1, 5, 5).expand(400, 1, 5, 5)
    centres = shift_images(images, 1)[:, 0, 2, 2]
    assert set(centres.tolist()) == {6, 7, 8, 11, 12, 13, 16, 17, 18}
    assert th.equal(shift_images(images, 0), images)
    encoder = ImageEncoder(spaces.Box(0, 255, (1, 16, 16), np.uint8), shift=2)
    images = th.randint(256, (9, 1, 16, 16), dtype=th.uint8)
    (batch,) = SharedFeatures(encoder, [make_samples(images, images, th.zeros(9))]).batches
    assert (batch.observations != batch.next_observations).any(dim=1).sum() > 5, "those of s and s' are drawn separately"


def test_the_mean_of_the_images_it_learned_from_is_subtracted():
    encoder = ImageEncoder(spaces.Box(0, 255, (1, 16, 16), np.uint8), shift=0, subtract_mean=True)
    images = th.randint(256, (3, 9, 1, 16, 16), dtype=th.uint8)
    for each, encoder.is_frozen in zip(images, [False, False, True], strict=True):
        (batch,) = SharedFeatures(encoder, [make_samples(each, each, th.zeros(9))]).batches
    centred = images[2].double() / 255 - images[:2].double().mean(dim=(0, 1)) / 255
    assert th.allclose(batch.observations, encoder.trunk(encoder.convolutions(centred.float())), atol=1e-6)


@pytest.mark.parametrize("learns_from", ["critic", "reward", "both", "none"])
@pytest.mark.parametrize("method", [APT, DIAYN])
def test_gradients_are_those_through_the_whole_graph(method, learns_from):
    """As in URLB with "reward": the losses of ICM and of the discriminator alone."""
    kwargs = {"shift": 0, "n_channels": 4, "features_dim": 5, "subtract_mean": True}
    kwargs = {"encoder_learns_from": learns_from, "encoder_kwargs": kwargs}
    model = pixel_model(method, learning_rate=0.0, target_policy_noise=0.0, **kwargs)
    model.policy.double(), model.intrinsic.double()
    images = th.randint(256, (2, 20, *IMAGE[-1:], *IMAGE[:2]), dtype=th.uint8)
    batch = make_samples(*images, th.arange(20) % 4, th.rand(20, 1) * 2 - 1)
    batch = batch._replace(**{name: getattr(batch, name).double() for name in ("actions", "rewards", "dones", "discounts")})
    encoder = model.policy.encoder
    model._update([batch])
    gradients = [parameter.grad for parameter in encoder.parameters()]
    if learns_from == "none":
        assert gradients == [None] * len(gradients)
        return
    whole = batch._replace(observations=encoder(images[0]), next_observations=encoder(images[1]))
    losses = {"reward": model.intrinsic.loss(whole), "critic": model.critic_loss(model.replay_buffer.relabel(whole))}
    loss = sum(losses.values()) if learns_from == "both" else losses[learns_from]
    expected = th.autograd.grad(loss, list(encoder.parameters()))
    assert all(th.allclose(ours, theirs, rtol=1e-9, atol=1e-12) for ours, theirs in zip(gradients, expected, strict=True))
    assert all((gradient != 0).any() for gradient in gradients)


@every_method
def test_learns_predicts_saves_and_loads(method):
    """Weights, moments of the encoder's optimizer, and what follows from them."""
    model = pixel_model(method, learning_starts=20, **LEARNS).learn(60)
    assert model._n_updates > 0 and model.obs_dim == 50 and model.policy.encoder.optimizer.state
    loaded = method.load(saved(model), make_pictures(), device="cpu", buffer_size=100)
    assert not differences(model, loaded)
    observations = make_pictures(3).reset()
    expected, _ = model.predict(observations, skill=[0, 3, 1], deterministic=True)
    for images in (observations, observations.transpose(0, 3, 1, 2)):
        assert_predict_alike(model, loaded, images)
        assert (loaded.predict(images, skill=[0, 3, 1], deterministic=True)[0] == expected).all()
    goals = loaded.goal_skill(observations, observations[::-1])
    assert goals is None or len(goals) == 3
    assert loaded.learn(50)._n_updates > 0 and differences(model, loaded)
    loaded.set_parameters(model.get_parameters())
    assert not differences(model, loaded)


def test_the_encoder_stops_learning_when_the_constraint_starts():
    model = pixel_model(CeSD, intrinsic_kwargs={"constraint_kwargs": {"start": 61}}).learn(60)
    assert not model.is_constrained and model.policy.encoder.optimizer.state
    before = encoder_weights(model)
    model.learn(20, reset_num_timesteps=False)
    assert model.is_constrained and same(encoder_weights(model), before)
    always = pixel_model(CeSD, intrinsic_kwargs={"constraint_kwargs": {"start": 0.0}}).learn(60)
    assert always.is_constrained and always.policy.encoder.optimizer.state, "there is no time before it"


LEARNS = {"encoder_learns_from": "both", "encoder_kwargs": {"subtract_mean": True}}
FLOAT = spaces.Box(0, 1, (3, 16, 16))
MIXED = spaces.Dict({"camera": spaces.Box(0, 255, (3, 16, 16), np.uint8), "speed": spaces.Box(-1, 1, (2,))})


@pytest.mark.parametrize(
    ("remedy", "make"),
    {
        "MlpPolicy": lambda: make_small(CeSD, policy="CnnPolicy"),
        "norm_obs=False": lambda: pixel_model(CeSD, VecNormalize(make_pictures())),
        "leave images as they are": lambda: pixel_model(APS, make_pictures(space=FLOAT)),
        "render_only=True.*MultiInputPolicy.*36x36": lambda: pixel_model(CeSD, make_pictures(space=MIXED)),
        "keep_dim=True": lambda: pixel_model(CeSD, make_pictures(space=spaces.Box(0, 255, (16, 16), np.uint8))),
        "leave encoder_learns_from": lambda: make_small(CeSD, policy_kwargs={"encoder_learns_from": "both"}),
        r"features_extractor_\* out": lambda: pixel_model(CeSD, features_extractor_class=nn.Identity),
        "or pass encoder_kwargs": lambda: pixel_model(CeSD, features_extractor_kwargs={"features_dim": 8}),
        "did you mean 'shift'": lambda: pixel_model(CeSD, encoder_kwargs={"shif": 1}),
        "strides": lambda: pixel_model(CeSD, encoder_kwargs={"strides": [2] * 5}),
        "leave it out of intrinsic_kwargs": lambda: pixel_model(CeSD, intrinsic_kwargs={"cluster_window": 5}),
    }.items(),
)
def test_mistakes_end_in_the_remedy(remedy, make):
    with pytest.raises(ValueError, match=remedy):
        make()


def stacked_model(method=CeSD, **kwargs):
    """A model of two frames in two environments, which has learned a little."""
    return pixel_model(method, make_pictures(2, 2), **{**LEARNS, **kwargs}).learn(120)


def encoder_weights(model):
    return [value.clone() for value in model.policy.encoder.state_dict().values()]


def same(first, second):
    return all(th.equal(ours, theirs) for ours, theirs in zip(first, second, strict=True))


@pytest.mark.parametrize("method", [CeSD, APS])
def test_a_task_takes_the_encoder_over(method):
    """From scratch without actor and trunk. Its critic trains it, unless it is frozen, as in URLB."""
    pretrained = stacked_model(method)
    task = {"env": make_pictures(2, 2), "learning_starts": 40, "seed": 0, "device": "cpu"}
    frozen = {"policy_kwargs": {"encoder_learns_from": "none"}, "skill": "best"}
    model = method.from_pretrained(saved(pretrained), **frozen, **task).learn(80)
    assert model._n_updates > 0 and model.skill is not None and same(encoder_weights(model), encoder_weights(pretrained))
    model = method.from_pretrained(saved(pretrained), skill=1, transfer=["actor"], **task)
    assert model.policy.encoder.learns_from == "critic" and same(encoder_weights(model), encoder_weights(pretrained))
    assert not same(encoder_weights(model.learn(80)), encoder_weights(pretrained))
    scratch = method.from_pretrained(saved(pretrained), skill=1, transfer=[], **task)
    assert scratch.policy.encoder.learns_from == "critic" and not same(encoder_weights(scratch), encoder_weights(pretrained))


def test_an_exported_policy_takes_images(tmp_path):
    model = stacked_model(encoder_kwargs={"features_dim": 7, "subtract_mean": True})
    policy = import_policy(export_policy(model, tmp_path))
    observations = make_pictures(3, 2).reset()
    for images in (observations, observations[0], observations.transpose(0, 3, 1, 2)):
        assert (policy.predict(images, skill=2)[0] == model.predict(images, skill=2)[0]).all()
    ours, theirs = (play_and_measure(each, make_pictures(4, 2), n_rollouts=2, n_steps=5)[1] for each in (policy, model))
    assert (ours.observations == theirs.observations).all()


def test_metrics_are_of_places_and_features():
    """In environments without the stack, too; never of pixels."""
    model = stacked_model(skill_duration=5)
    results = [play_and_score(model, make_pictures(4, n_stack), n_episodes=8, n_steps=6, seed=0) for n_stack in (1, 2)]
    (metrics, rollouts), (expected, _) = results
    assert metrics == expected and rollouts.observations.shape == (4, 2, 7, 50) and np.abs(rollouts.observations).max() <= 1
    assert metrics["knn_accuracy"] == metrics["knn_accuracy_places"] and "on_cluster_share" in metrics
    images = make_pictures(3, 2).reset()
    features = model.policy.encoder.features(images.transpose(0, 3, 1, 2)).numpy()
    assert (model.predict_clusters(features) == model.predict_clusters(images)).all()


def test_show_draws_them():
    shown = show_skills(stacked_model(), n_steps=4, n_rollouts=2, n_frames=2, video=True)
    assert shown.rollouts[0].observations.shape[1] == 50 and len(shown.film) > 0 and "untrained" in shown.columns
