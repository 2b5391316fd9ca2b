"""Jaxley: neurons of several compartments, simulated and differentiated."""

import jax
import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH
from jaxley.connect import connect
from jaxley.synapses import IonotropicSynapse


def _cell():
    branch = jx.Branch(jx.Compartment(), ncomp=2)
    cell = jx.Cell(branch, parents=[-1, 0, 0])
    cell.insert(HH())
    return cell


def _current():
    return jx.step_current(i_delay=0.5, i_dur=1.0, i_amp=0.2, delta_t=0.025, t_max=2.0)


def voltages_of_a_branched_cell():
    cell = _cell()
    cell.branch(0).comp(0).stimulate(_current())
    cell.branch(2).comp(1).record()
    cell.branch(0).comp(0).record()
    return jx.integrate(cell, delta_t=0.025)[:, ::8]


def voltages_of_two_cells_by_a_synapse():
    network = jx.Network([_cell(), _cell()])
    connect(network.cell(0).branch(0).loc(0.0), network.cell(1).branch(1).loc(1.0), IonotropicSynapse())
    network.cell(0).branch(0).comp(0).stimulate(_current())
    network.cell(1).branch(0).comp(0).record()
    return jx.integrate(network, delta_t=0.025)[:, ::8]


def slope_by_a_conductance():
    cell = _cell()
    cell.branch(0).comp(0).stimulate(_current())
    cell.branch(0).comp(0).record()
    cell.make_trainable("HH_gK")
    parameters = cell.get_parameters()
    return jax.grad(lambda p: jnp.mean(jx.integrate(cell, params=p, delta_t=0.025)))(parameters)
