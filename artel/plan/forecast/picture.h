// Draws forecasts as SVG: the time and memory of a step, by component.
#pragma once

#include <span>
#include <string>

#include "artel/plan/forecast/training_forecast.h"

namespace artel::plan {

// Draws two bars per forecast: the time of a step by phase, and the memory of a worker by use. A
// dashed line marks the memory of a device.
std::string forecast_svg(std::string_view title, std::span<const TrainingForecast> forecasts);

}  // namespace artel::plan
