"""Faults that the library once had, or that no test noticed; `mutants.py --known` puts them back.

Each has the test that was written for it. It must fail with the fault.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFault:
    """A change of one place of the library.

    Attributes:
        what: goes wrong
        path: of the module, relative to the library
        before: the text as it is, which stands in it once
        after: the text with the fault
        test: that fails then
    """

    what: str
    path: str
    before: str
    after: str
    test: str

    def mutated(self, text: str) -> str:
        """The text of the module with the fault."""
        if text.count(self.before) != 1:
            raise ValueError(f"'{self.before}' does not stand in {self.path} once")
        return text.replace(self.before, self.after)


KNOWN_FAULTS = (
    KnownFault(
        "one wrong bit of a MATLAB file ends the process",
        "io/_matlab_structure.py",
        "        if kind not in kinds:",
        "        if not kinds:",
        "tests/io/test_matlab.py::test_a_type_that_there_is_not_does_not_end_the_process",
    ),
    KnownFault(
        "a MATLAB file unpacks without end",
        "io/_matlab_structure.py",
        "        if left < 0:",
        "        if left > max_unpacked:",
        "tests/io/test_matlab.py::test_arrays_that_unpack_to_too_much_are_refused",
    ),
    KnownFault(
        "a time in JSON is an internal error",
        "_saved.py",
        "return value.isoformat()",
        "return value",
        "tests/fleet/test_trend.py::test_the_command_line_says_it_too",
    ),
    KnownFault(
        "a typo in an address is an internal error",
        "live/_addresses.py",
        "if _HOST.fullmatch(host) and (not colon or _is_port(port)):",
        "if not colon or _is_port(port):",
        "tests/live/test_streams.py::test_a_typo_in_an_address_is_one_line",
    ),
    KnownFault(
        "a port beyond the last one is taken",
        "live/_addresses.py",
        "0 < int(text) <= _MAX_PORT",
        "int(text) >= 0",
        "tests/live/test_streams.py::test_a_typo_in_an_address_is_one_line",
    ),
    KnownFault(
        "one outlier of a wrist sensor ends tracking",
        "wrist/_recording.py",
        "possible = without_impossible(recording)",
        "possible = recording",
        "tests/cli/test_weigh_wrist.py::"
        "test_a_row_with_an_impossible_wrench_is_left_out_when_tracking",
    ),
    KnownFault(
        "the first of two columns of one name is read",
        "io/_binary.py",
        "if chosen.count(name) > 1:",
        "if chosen.count(name) > 2:",
        "tests/cli/test_weigh_wrist.py::test_tables_with_a_doubled_column_or_texts_are_refused",
    ),
    KnownFault(
        "what a library raises for a damaged file is an internal error",
        "_saved.py",
        '    except Exception as error:\n        raise UnreadableFile(f"{what} ',
        '    except ValueError as error:\n        raise UnreadableFile(f"{what} ',
        "tests/io/test_recordings.py::test_what_a_library_raises_while_it_parses_is_one_line",
    ),
    KnownFault(
        "a time of a catalogue beyond all calendars is an internal error",
        "fleet/_catalogue.py",
        "if not 0 <= value <= _LATEST_S:",
        "if not 0 <= value:",
        "tests/fleet/test_fleet.py::test_catalogues_that_are_refused",
    ),
    KnownFault(
        "a joint of the arm that follows another one is taken as independent",
        "robot/_urdf.py",
        "        if mimic is not None:\n            raise",
        "        if mimic is not None and not names:\n            raise",
        "tests/robot/test_urdf.py::test_a_joint_of_the_arm_that_follows_another_is_refused",
    ),
    KnownFault(
        "a payload far above the rating is exported",
        "payload/_plausibility.py",
        "if least > _MAX_OVERLOAD * rated:",
        "if least > 1000 * rated:",
        "tests/payload/test_payload.py::test_a_body_that_no_tool_or_part_has_is_said",
    ),
    KnownFault(
        "a mass that no arm carries is exported",
        "payload/_plausibility.py",
        "elif least > MAX_MASS:",
        "elif least > 10 * MAX_MASS:",
        "tests/payload/test_payload.py::test_a_body_that_no_tool_or_part_has_is_said",
    ),
    KnownFault(
        "a handshake that drips texts never ends",
        "live/_ur.py",
        "if time.monotonic() > end_s:\n                    raise SourceFailed(\n"
        '                        f"{self._place} answers, but',
        "if self._client is None:\n                    raise SourceFailed(\n"
        '                        f"{self._place} answers, but',
        "tests/live/test_streams.py::test_a_handshake_that_drips_texts_ends",
    ),
    KnownFault(
        "a reader thread ends silently",
        "live/_source.py",
        "except Exception as error:  # whatever it is, the caller of take() must learn of it",
        "except ZeroDivisionError as error:",
        "tests/live/test_streams.py::test_a_reader_thread_that_fails_says_so",
    ),
    KnownFault(
        "rows wait while a recording is converted",
        "live/_recorder.py",
        "                self._file.finish()\n                self._finishing",
        "                self._file.finish()\n                self._file.wait()\n"
        "                self._finishing",
        "tests/live/test_streams.py::test_a_new_clock_does_not_wait_for_the_conversion",
    ),
    KnownFault(
        "a row without a time costs the recording",
        "live/_source.py",
        "if not math.isfinite(t):",
        "if t is None:",
        "tests/live/test_streams.py::test_one_row_without_a_time_does_not_cost_the_recording",
    ),
    KnownFault(
        "an empty file blocks its name",
        "live/_recorder.py",
        "stream.exists() and stream.stat().st_size > 0",
        "stream.exists()",
        "tests/live/test_streams.py::test_an_empty_file_does_not_block_its_name",
    ),
    KnownFault(
        "rows that wait for a disk have no bound",
        "live/_recorder.py",
        "if len(self._waiting) >= _MAX_WAITING_ROWS:",
        "if len(self._waiting) < 0:",
        "tests/live/test_streams.py::test_a_slow_disk_costs_rows_that_are_counted_but_no_memory",
    ),
    KnownFault(
        "the oldest row of a log counts",
        "fleet/_store.py",
        "written[i] > written[latest[key]]",
        "written[i] < written[latest[key]]",
        "tests/fleet/test_store.py::test_the_latest_row_of_a_log_counts",
    ),
    KnownFault(
        "an echo that is 0.1 kg off is taken",
        "live/_controller.py",
        "_TOLERANCES = (1e-4,",
        "_TOLERANCES = (0.2,",
        "tests/live/test_setting.py::test_an_echo_is_the_payload_that_was_sent",
    ),
    KnownFault(
        "the zero drift of the start is reported",
        "wrist/tracking/_estimator.py",
        "now[DRIFT, TREND] = self._age(state) * np.eye(6)",
        "now[DRIFT, TREND] = 0 * np.eye(6)",
        "tests/wrist/test_tracking.py::test_a_zero_that_moves_is_reported_as_it_is_now",
    ),
    KnownFault(
        "a gap does not end the window",
        "wrist/tracking/_estimator.py",
        "state = self._drained(state)._replace(counts=",
        "state = state._replace(counts=",
        "tests/wrist/test_tracking.py::test_a_gap_ends_the_window_and_the_rest",
    ),
    KnownFault(
        "the statistic after a rest is not doubled",
        "torque/tracking/_change.py",
        "_WEIGHT_AFTER_REST = 2.0",
        "_WEIGHT_AFTER_REST = 1.0",
        "tests/torque/test_tracking.py::test_the_statistic_after_a_rest_counts_twice",
    ),
    KnownFault(
        "a file takes its name before it is on the disk",
        "_saved.py",
        "            os.fsync(file.fileno())",
        "            file.fileno()",
        "tests/test_round_trips.py::test_a_file_is_on_the_disk_before_it_takes_its_name",
    ),
    KnownFault(
        "samples next to a jump of the wrench count in full",
        "wrist/tracking/_estimator.py",
        "weight = 1 / (1 + (jumps",
        "weight = 1 / (1 + 0 * (jumps",
        "tests/wrist/test_tracking.py::"
        "test_accelerations_that_jump_between_rows_do_not_bias_the_load",
    ),
    KnownFault(
        "a load that is shaken for one row is called touched",
        "wrist/tracking/_path.py",
        "            rows[-1, self._for_jumps] += _MISSING_SPIKE * spike\n",
        "            rows[-1, self._for_jumps] += 0.0 * spike\n",
        "tests/wrist/test_tracking.py::"
        "test_a_load_that_is_shaken_for_one_row_is_not_called_touched",
    ),
    KnownFault(
        "a preparation that lacks a setting is read with the default",
        "recording/_samples.py",
        "class Preparation(Value, error=InvalidSamples)",
        "class Preparation(Value, error=InvalidSamples, partial=True)",
        "tests/signals/test_prepare.py::"
        "test_a_preparation_comes_back_from_its_plain_values_with_every_field",
    ),
    KnownFault(
        "a server without a host listens on every network",
        "cli/serve.py",
        "if not host or not port.isdecimal() or int(port) > _MAX_PORT:",
        "if not host and not port.isdecimal():",
        "tests/cli/test_live_commands.py::"
        "test_a_controller_is_not_served_on_every_network_by_mistake",
    ),
    KnownFault(
        "the speed slider moves without its mask",
        "twin/_registers.py",
        'in given and client.get("speed_slider_mask"):',
        'in given or client.get("speed_slider_mask"):',
        "tests/twin/test_urscript.py::test_the_speed_slider_is_only_moved_with_its_mask",
    ),
    KnownFault(
        "a taken neighbour of a free port ends the server",
        "twin/_server.py",
        "if port or attempt == _MAX_PORT_ATTEMPTS - 1:",
        "if port or attempt != _MAX_PORT_ATTEMPTS - 1:",
        "tests/twin/test_twin_controller.py::"
        "test_any_free_port_is_tried_again_where_a_neighbour_is_taken",
    ),
    KnownFault(
        "an unknown number of a payload difference is taken as known",
        "torque/methods/_difference.py",
        "if len(s) < 10:",
        "if len(s) > 10:",
        "tests/torque/test_methods.py::test_numbers_that_few_combinations_do_not_tell_are_unknown",
    ),
    KnownFault(
        "three postures tell a trend",
        "wrist/_static.py",
        "6 * len(chosen) - model.p - 6 >= 6",
        "6 * len(chosen) - model.p + 6 >= 6",
        "tests/wrist/test_static.py::test_few_postures_do_not_tell_a_trend",
    ),
    KnownFault(
        "bad picks are in the distribution of a part",
        "report/_picks.py",
        "if pick.part == batch.part and pick.decision is Decision.GOOD and pick.mass is not None",
        "if pick.part == batch.part or pick.decision is Decision.GOOD or pick.mass is not None",
        "tests/picking/test_picks.py::test_the_distribution_of_a_part_holds_its_good_picks",
    ),
    KnownFault(
        "a known pick counts with the centre of another part",
        "picking/_shift.py",
        "            mass = judge.mass_of(number, carry, references)\n            references",
        "            mass = carry.masses[0]\n            references",
        "tests/picking/test_picks.py::test_a_known_pick_counts_with_the_centre_of_its_own_part",
    ),
    KnownFault(
        "a known pick of a stream counts with the centre of another part",
        "live/_picks.py",
        "mass = self.judge.mass_of(number, weighed, self.references)",
        "mass = weighed.masses[0]",
        "tests/picking/test_picks_command.py::"
        "test_a_known_pick_of_a_stream_counts_with_the_centre_of_its_own_part",
    ),
    KnownFault(
        "the common deviation of a pick is that of another part",
        "picking/_shift.py",
        "out.append((pick, mass.common_std))",
        "out.append((pick, carry.masses[0].common_std))",
        "tests/picking/test_picks.py::test_the_common_deviation_of_a_pick_is_that_of_its_mass",
    ),
    KnownFault(
        "files of signals without positions are an internal error",
        "io/_signal_files.py",
        'if "t" in arrays and arrays["t"].shape[1] == 1:',
        'if "t" in arrays and arrays["q"].shape[1] > 0:',
        "tests/io/test_signal_files.py::test_refusals_name_the_file",
    ),
    KnownFault(
        "the highest dot of a cloud with gaps is not drawn",
        "drawing/_interactive.py",
        "np.where(gap, -np.inf, values).argmax()",
        "np.where(gap, np.inf, values).argmax()",
        "tests/drawing/test_drawing.py::"
        "test_a_cloud_is_thinned_evenly_and_keeps_its_outermost_dots",
    ),
    KnownFault(
        "a legend covers the title of a panel",
        "drawing/_picture.py",
        "above if columns == 1 else",
        "above if columns != 1 else",
        "tests/drawing/test_drawing.py::"
        "test_legends_of_single_panels_cover_neither_a_title_nor_a_wide_curve",
    ),
    KnownFault(
        "what was printed before Ctrl-C is lost",
        "__main__.py",
        '            sys.stderr.write("error: interrupted\\n")\n        sys.stdout.flush()',
        '            sys.stderr.write("error: interrupted\\n")',
        "tests/cli/test_output.py::test_what_was_printed_before_ctrl_c_is_not_lost",
    ),
    KnownFault(
        "the evidence of a tracked cause ignores all unknowns but one",
        "identification/_misfit.py",
        "unit = gram[:-1, :-1]",
        "unit = gram[:+1, :-1]",
        "tests/torque/test_evidence.py::"
        "test_a_tracked_square_is_what_a_column_takes_from_the_residuals",
    ),
    KnownFault(
        "the evidence of a tracked cause lacks an unknown",
        "identification/_misfit.py",
        "unit = gram[:-1, :-1]",
        "unit = gram[:-1, :+1]",
        "tests/torque/test_evidence.py::"
        "test_a_tracked_square_is_what_a_column_takes_from_the_residuals",
    ),
    KnownFault(
        "a recording is left out in forty folds",
        "identification/_left_out.py",
        "MAX_FOLDS = 4\n",
        "MAX_FOLDS = 40\n",
        "tests/identification/test_prediction.py::"
        "test_each_row_is_left_out_once_and_in_at_most_four_folds",
    ),
    KnownFault(
        "a long region of the centre of mass is called too small",
        "payload/_views.py",
        "np.linalg.eigvalsh(com_spread)[-1]",
        "np.linalg.eigvalsh(com_spread)[+1]",
        "tests/report/test_page.py::test_an_invisible_region_is_not_in_the_legend",
    ),
    KnownFault(
        "an axis of the base is offered as another direction of gravity",
        "identification/_gravity_direction.py",
        "if np.abs(d).sum() == 1]",
        "if np.abs(d).sum() != 1]",
        "tests/identification/test_gravity_direction.py::"
        "test_an_axis_of_the_base_is_offered_exactly",
    ),
    KnownFault(
        "a load with an unknown centre ends the page",
        "live/_scene.py",
        "if payload is not None and known and found is not None:",
        "if payload is not None or known or found is not None:",
        "tests/live/test_page.py::test_a_load_whose_centre_is_not_known_is_not_drawn",
    ),
    KnownFault(
        "a sector lies about its border",
        "excitation/_workspace.py",
        "middle = (self.phi[0] + self.phi[1]) / 2",
        "middle = (self.phi[-1] + self.phi[1]) / 2",
        "tests/excitation/test_limits.py::test_a_sector_lies_between_its_angles",
    ),
    KnownFault(
        "the refusal of a bound names the first parameter as the last",
        "identification/_feasible_space.py",
        "{robot.parameter_names[-1]}",
        "{robot.parameter_names[0]}",
        "tests/identification/test_feasible.py::test_an_unknown_bound_is_refused",
    ),
)
