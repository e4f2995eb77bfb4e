// One function for each schedule; registry.cc lists them.
#pragma once

#include "artel/plan/schedule.h"

namespace artel::plan {

ScheduleKind gpipe();
ScheduleKind one_forward_one_backward();
ScheduleKind interleaved();
// ZB-H1 and ZB-H2 of Qi et al., "Zero Bubble Pipeline Parallelism" (2024).
ScheduleKind zero_bubble();
ScheduleKind zero_bubble_h2();

}  // namespace artel::plan
