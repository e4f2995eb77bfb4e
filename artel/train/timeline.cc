#include "artel/train/timeline.h"

#include <nlohmann/json.hpp>

#include "artel/base/json.h"
#include "artel/train/agreement.h"

namespace artel {

using Json = nlohmann::json;

Timeline::Timeline(comm::Group* group) {
  if (group) group->barrier({.label = "begin of the timeline"});
  origin_ = Clock::now();
}

void Timeline::add(std::string_view category, int thread, std::string name, Clock::time_point begin,
                   Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= kMostSpans) return;
  spans_.push_back({std::move(name), std::string(category), 0, thread,
                    seconds_between(origin_, begin), seconds_between(begin, end)});
}

std::vector<TimelineSpan> Timeline::gather(comm::Group* group) {
  const std::lock_guard lock(mutex_);
  if (!group) return std::move(spans_);
  Json mine = Json::array();
  for (const TimelineSpan& s : spans_)
    mine.push_back({s.name, s.category, s.thread, s.begin, s.seconds});
  const std::vector<std::string> all = gather_text(*group, mine.dump());
  std::vector<TimelineSpan> spans;
  for (size_t worker = 0; worker < all.size(); ++worker)
    for (const Json& s : parse_json(all[worker], "timeline"))
      spans.push_back({s[0], s[1], static_cast<int>(worker), s[2], s[3], s[4]});
  return spans;
}

}  // namespace artel
