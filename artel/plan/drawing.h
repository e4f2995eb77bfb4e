// A simulated schedule for people: a table, a drawing in text and one in SVG.
#pragma once

#include <string>

#include "artel/plan/simulate.h"

namespace artel::plan {

// For each worker its stages, the activations that it keeps, and how much of a step it is busy.
std::string schedule_table(const Schedule& schedule, const Simulation& simulation);

// A line for each worker, time from left to right: F0 is the forward pass of lane 0, B its backward
// pass, I and W the gradients of input and weights. Of several stages a worker, letters tell them
// apart. In at most `columns` columns; where they do not suffice, only the letter of a task is
// shown, or nothing.
std::string schedule_text(const Schedule& schedule, const Simulation& simulation,
                          int columns = 240);
std::string schedule_svg(const Schedule& schedule, const Simulation& simulation);

}  // namespace artel::plan
