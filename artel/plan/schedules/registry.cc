#include "artel/base/registry.h"
#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

// The simplest first: of two that are equally fast, `auto` takes the one that is listed earlier.
const Registry<ScheduleKind>& schedules() {
  static const Registry<ScheduleKind> registry("schedule", {{"1f1b", one_forward_one_backward()},
                                                            {"gpipe", gpipe()},
                                                            {"interleaved", interleaved()},
                                                            {"zero_bubble", zero_bubble()},
                                                            {"zero_bubble_h2", zero_bubble_h2()}});
  return registry;
}

}  // namespace

std::vector<std::string> schedule_names() { return schedules().names(); }

const ScheduleKind& schedule_kind(std::string_view name) { return schedules().at(name); }

}  // namespace artel::plan
