"""Board power of a device while it serves, idle power, and what the server around it adds."""

from __future__ import annotations

import numpy as np

from planner.errors import InputError
from planner.roofline.arrays import Array, Values, array
from planner.roofline.hardware import Hardware
from planner.schema.catalog import Device

# Share of TDP = BASE + memory · (share of time reading memory) + COMPUTE · (share of time computing) + OCTAVE ·
# log2(batch), fitted on the boards of ML.ENERGY v3 (vLLM on H100 and B200), docs/hardware.md; the memory share belongs
# to the device. A dense model on H100 draws about .64 of TDP at batch 8, .75 at 48, .85 at 200, and a large prefill the
# highest share; kernel fits understate serving boards.
BASE_SHARE = 0.23
COMPUTE_SHARE = 0.59
SHARE_PER_OCTAVE = 0.033
HIGHEST_SHARE = 0.98

# Provisioned and average power of a server over the TDP of its devices, where neither nameplate nor all-in is known.
DEFAULT_HOST_FACTOR = 1.4


def tdp_share(hw: Hardware, memory_share: Values, compute_share: Values, batch: Values) -> Array:
    """Share of TDP that a board draws, from the shares of time that its memory and its matrix units are busy.

    At least in proportion to the compute share: a board that does nothing but large products draws the highest share.
    """
    octaves = np.log2(np.maximum(array(batch), 1.0))
    memory = hw.memory_power_share * np.minimum(memory_share, 1.0)
    compute = COMPUTE_SHARE * np.minimum(compute_share, 1.0)
    share = BASE_SHARE + memory + compute + SHARE_PER_OCTAVE * octaves
    saturated = BASE_SHARE + (HIGHEST_SHARE - BASE_SHARE) * np.minimum(compute_share, 1.0)
    return array(np.minimum(np.maximum(share, saturated), HIGHEST_SHARE))


def replica_power_w(hw: Hardware, share: Values, degree: Values) -> Array:
    """Power of all devices of a replica; in a pipeline of SRAM chips one stage works on a batch and the rest idle."""
    busy = np.maximum(share * hw.tdp_w, hw.idle_w)
    working = np.where(hw.pipelined > 0.0, 1.0, degree)
    return array(degree * hw.idle_w + working * (busy - hw.idle_w))


def energy_j_per_request(power_w: Values, latency_s: Values, batch: Values) -> Array:
    """Energy of one operation, shared by the requests in the batch."""
    return array(power_w * latency_s / batch)


def host_factor(device: Device) -> tuple[float, tuple[str, ...]]:
    """Power of a server over the TDP of its devices, and what of it is assumed.

    Nameplate per device, else the published all-in figure, else a default.

    Raises
    ------
    InputError
        If the device has no data sheet.
    """
    sheet = device.data_sheet
    if sheet is None:
        raise InputError("the device has no data_sheet: its host is not known")
    if sheet.tdp_w is not None and sheet.host is not None:
        if sheet.host.nameplate_kw is not None:
            return sheet.host.nameplate_kw * 1000.0 / (sheet.host.devices * sheet.tdp_w), ()
        if sheet.host.all_in_kw_per_device is not None:
            return sheet.host.all_in_kw_per_device * 1000.0 / sheet.tdp_w, ()
    return DEFAULT_HOST_FACTOR, ("host_factor",)
