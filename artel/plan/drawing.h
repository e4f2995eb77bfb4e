// Displays a simulated schedule as a table, as text, and as SVG.
#pragma once

#include <string>

#include "artel/plan/simulate.h"

namespace artel::plan {

// One row per worker: its stages, peak number of activations, and busy share of a step.
std::string schedule_table(const Schedule& schedule, const Simulation& simulation);

// One line per worker, time from left to right. F0 is the forward pass of lane 0, B its backward
// pass, I and W the gradients of input and weights. Letters distinguish several stages of a worker.
// Uses at most `columns` columns; narrow tasks show only their letter, or nothing.
std::string schedule_text(const Schedule& schedule, const Simulation& simulation,
                          int columns = 240);
std::string schedule_svg(const Schedule& schedule, const Simulation& simulation);

}  // namespace artel::plan
