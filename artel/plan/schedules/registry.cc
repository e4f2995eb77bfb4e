#include "artel/base/registry.h"
#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

// Simplest first: among equally fast schedules, `auto` selects the first.
Registry<ScheduleKind>& schedules() {
  static Registry<ScheduleKind> registry("schedule", {{"1f1b", one_forward_one_backward()},
                                                      {"gpipe", gpipe()},
                                                      {"interleaved", interleaved()},
                                                      {"zero_bubble", zero_bubble()},
                                                      {"zero_bubble_h2", zero_bubble_h2()}});
  return registry;
}

}  // namespace

void register_schedule(const std::string& name, ScheduleKind kind) {
  require_function("schedule", name, kind.tasks);
  require_function("schedule", name, kind.keeps);
  schedules().add(name, std::move(kind));
}

std::vector<std::string> schedule_names() { return schedules().names(); }

const ScheduleKind& schedule_kind(std::string_view name) { return schedules().at(name); }

}  // namespace artel::plan
