"""MuJoCo MJX: bodies, joints, contacts and sensors, their steps and derivatives."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

TOLERANCES = {"a_ball_falls_in_a_scan": (1e-3, "60 steps in f32, most of them in contact")}

BALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .35"><freejoint/><geom size=".3" mass="1"/></body>
  </worldbody>
</mujoco>"""

ARM = """
<mujoco>
  <compiler autolimits="true"/>
  <option timestep=".01" gravity="0 0 -9.81">{flags}</option>
  <default><geom type="capsule" size=".05"/><joint damping=".3" armature=".02"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" pos="0 0 -2"/>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" range="-120 120"/>
      <geom fromto="0 0 0 .5 0 0"/>
      <body name="lower" pos=".5 0 0">
        <joint name="elbow" axis="0 1 0" stiffness=".5"/>
        <geom fromto="0 0 0 .4 0 .1"/>
        <body name="wrist" pos=".4 0 .1">
          <joint name="ball" type="ball"/>
          <geom type="box" size=".1 .05 .04" euler="10 20 30"/>
          <site name="tip" pos=".1 0 0"/>
        </body>
      </body>
    </body>
    <body name="slider" pos="0 1 0">
      <joint name="slide" type="slide" axis="0 0 1"/><geom type="sphere" size=".1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both" stiffness="2"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-.5"/></fixed>
  </tendon>
  <actuator>
    <motor joint="shoulder" gear="3" ctrlrange="-1 1"/>
    <position name="lift" joint="elbow" kp="5"/>
    <velocity joint="slide" kv="2"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tip"/><framequat objtype="site" objname="tip"/>
    <jointvel joint="elbow"/><actuatorfrc actuator="lift"/><accelerometer site="tip"/><gyro site="tip"/>
    <subtreecom body="upper"/>
  </sensor>
</mujoco>"""


def _model(xml):
    model = mujoco.MjModel.from_xml_string(xml)
    return mjx.put_model(model), model


def _arm(flags=""):
    return _model(ARM.format(flags=flags))[0]


def _pose(model):
    """A state of the arm that is away from its limits, with controls."""
    data = mjx.make_data(model)
    qpos = data.qpos.at[:3].set(jnp.array([0.4, -0.7, 0.9])).at[2:6].set(jnp.array([0.9, 0.1, -0.3, 0.2]))
    return data.replace(qpos=qpos, qvel=jnp.linspace(-0.5, 0.6, model.nv), ctrl=jnp.array([0.5, -0.2, 0.3]))


def a_ball_falls_in_a_scan():
    model, _ = _model(BALL)

    @jax.jit
    def fall(data):
        def step(data, _):
            data = mjx.step(model, data)
            return data, (data.qpos[2], data.qvel[2])

        return jax.lax.scan(step, data, None, 60)

    data, (height, speed) = fall(mjx.make_data(model))
    return {"height": height, "speed": speed, "time": data.time}


def forward_of_an_arm():
    model = _arm()
    data = jax.jit(mjx.forward)(model, _pose(model))
    names = ("xpos", "xquat", "xipos", "geom_xmat", "site_xpos", "qfrc_bias", "qfrc_passive", "qfrc_actuator", "qacc")
    return {name: getattr(data, name) for name in names}


def a_step_by_rungekutta():
    states = {}
    for name in ("RK4",):
        model = _model(ARM.replace('timestep=".01"', f'timestep=".01" integrator="{name}"').format(flags=""))[0]
        data = jax.jit(mjx.step)(model, _pose(model))
        states[name] = (data.qpos, data.qvel, data.time)
    return states


def lanes_of_speeds():
    model, _ = _model(BALL)
    data = mjx.make_data(model)
    velocities = jax.random.uniform(jax.random.key(0), (5, model.nv))

    @jax.jit
    @jax.vmap
    def batched(velocity):
        moving = data.replace(qvel=velocity)
        return mjx.step(model, moving).qpos

    return batched(velocities)
