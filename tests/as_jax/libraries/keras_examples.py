"""Keras on its jax backend: models fitted, operations, layers and optimizers of one's own."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from keras import layers, ops


def _data(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _labels(count, classes, seed=1):
    return np.random.default_rng(seed).integers(0, classes, count)


def _fitted(model, x, y, epochs=2, batch_size=10):
    history = model.fit(x, y, epochs=epochs, batch_size=batch_size, verbose=0, shuffle=False).history
    return {
        "history": history,
        "predicted": model.predict(x[:5], verbose=0),
        "evaluated": model.evaluate(x, y, verbose=0),
    }


def quick_start_a_dense_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    x = _data(64, 6)
    return _fitted(model, x, x.sum(1, keepdims=True), epochs=4, batch_size=16)


def a_convolutional_classifier():
    keras.utils.set_random_seed(2)
    model = keras.Sequential(
        [
            layers.Input((12, 12, 3)),
            layers.Conv2D(4, 3, activation="gelu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(2),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.AdamW(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return _fitted(model, _data(40, 12, 12, 3), _labels(40, 5))


def recurrent_layers_over_words():
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            layers.Input((9,), dtype="int32"),
            layers.Embedding(20, 8, mask_zero=True),
            layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
            layers.GRU(5),
            layers.LayerNormalization(),
            layers.Dense(2),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return _fitted(model, np.random.default_rng(0).integers(0, 20, (24, 9)), _labels(24, 2), batch_size=8)


def attention_by_the_functional_interface():
    keras.utils.set_random_seed(5)
    inputs = layers.Input((7, 16))
    x = layers.Add()([inputs, layers.MultiHeadAttention(2, 8)(inputs, inputs, use_causal_mask=True)])
    outputs = layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x)))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Lion(1e-3), keras.losses.Huber())
    return _fitted(model, _data(20, 7, 16), _data(20, 3, seed=4))


def operations():
    x = _data(4, 6)
    return {
        "softmax": ops.softmax(x, axis=-1),
        "top": ops.top_k(x, 3)[0],
        "segments": ops.segment_sum(ops.arange(6), ops.array([0, 0, 1, 1, 2, 2]), num_segments=3),
        "scan": ops.scan(lambda c, v: (c + v, c * v), ops.array(0.0), ops.arange(5, dtype="float32")),
        "einsum": ops.einsum("ij,kj->ik", x, x),
        "resized": ops.image.resize(_data(1, 8, 8, 3), (5, 5)),
        "cholesky": ops.cholesky(x @ x.T + np.eye(4, dtype="float32")),
        "scattered": ops.scatter(ops.array([[0], [2]]), x[:2, 0], (4,)),
        "one_hot": ops.one_hot([0, 2], 3),
        "loop": ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), (0, ops.ones(2))),
        "stft": ops.stft(_data(40), 8, 4, 8),
    }


def a_layer_and_a_step_of_ones_own():
    class Scaled(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

        def call(self, x):
            self.add_loss(1e-2 * ops.sum(self.scale**2))
            return x * self.scale

    keras.utils.set_random_seed(6)
    model = keras.Sequential([layers.Input((4,)), Scaled(), layers.Dense(1, kernel_regularizer="l2")])
    optimizer = keras.optimizers.RMSprop(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.9))
    model.compile(optimizer, "mse")
    x = _data(20, 4)
    return _fitted(model, x, x[:, :1] - x[:, 1:2], epochs=3) | {"scale": model.layers[0].scale.numpy()}


def a_loop_without_state_in_jax():
    keras.utils.set_random_seed(7)
    model = keras.Sequential([layers.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(1)])
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    x = _data(16, 3)

    def loss(trainable, fixed):
        y, fixed = model.stateless_call(trainable, fixed, x)
        return ops.mean((y[:, 0] - x[:, 0]) ** 2), fixed

    @jax.jit
    def step(trainable, fixed, state):
        (value, fixed), slopes = jax.value_and_grad(loss, has_aux=True)(trainable, fixed)
        trainable, state = optimizer.stateless_apply(state, slopes, trainable)
        return value, trainable, fixed, state

    trainable = [v.value for v in model.trainable_variables]
    fixed, state = [v.value for v in model.non_trainable_variables], [v.value for v in optimizer.variables]
    values = []
    for _ in range(4):
        value, trainable, fixed, state = step(trainable, fixed, state)
        values.append(value)
    return {"values": values, "weights": trainable}


def images_are_augmented_and_numbers_drawn():
    seeds = keras.random.SeedGenerator(11)
    x = np.abs(_data(2, 8, 8, 3))
    return {
        "flipped": layers.RandomFlip(seed=3)(x, training=True),
        "turned": layers.RandomRotation(0.2, seed=4)(x, training=True),
        "normal": keras.random.normal((3,), seed=seeds),
        "truncated": keras.random.truncated_normal((5,), seed=seeds),
        "dropped": keras.random.dropout(np.ones((4, 4), "float32"), 0.5, seed=seeds),
        "shuffled": keras.random.shuffle(np.arange(7), seed=seeds),
    }


def a_model_is_saved_and_read():
    keras.utils.set_random_seed(8)
    model = keras.Sequential([layers.Input((3,)), layers.Dense(4, "swish"), layers.Dense(2)])
    x = _data(5, 3)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        read = keras.saving.load_model(f"{folder}/model.keras")
    return {"before": model(x), "after": read(x)}
