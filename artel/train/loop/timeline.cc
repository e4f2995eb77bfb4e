#include "artel/train/loop/timeline.h"

#include <algorithm>

#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/train/loop/agreement.h"

namespace artel {

using Json = nlohmann::json;

void Timeline::start(comm::Group* group) {
  drop();
  meet(group);
  recording_ = true;
}

void Timeline::drop() {
  recording_ = false;
  const MutexLock lock(mutex_);
  spans_.clear();
}

void Timeline::add(std::string_view category, int thread, std::string name, Clock::time_point begin,
                   Clock::time_point end) {
  const MutexLock lock(mutex_);
  if (!recording() || spans_.size() >= kMostSpans) return;
  spans_.push_back({std::move(name), std::string(category), 0, thread,
                    std::chrono::duration<double>(begin.time_since_epoch()).count(),
                    seconds_between(begin, end)});
}

TimelineRecord Timeline::stop(comm::Group* group, bool all_get_it) {
  recording_ = false;
  const ClockReading now = compare_clocks(group);
  TimelineRecord record = {.spans = {}, .clock_error = std::max(met_.error, now.error)};
  {
    const MutexLock lock(mutex_);
    record.spans = std::exchange(spans_, {});
  }
  for (TimelineSpan& span : record.spans) span.begin = at_worker_0(span.begin, met_, now);
  if (group) {
    Json mine = Json::array();
    for (const TimelineSpan& s : record.spans)
      mine.push_back({s.name, s.category, s.thread, s.begin, s.seconds});
    record.spans.clear();
    std::vector<std::string> all = gather_text(*group, mine.dump());
    if (all_get_it) all = split(broadcast_text(*group, join(all, "\n")), '\n');
    for (size_t worker = 0; worker < all.size(); ++worker)
      for (const Json& s : parse_json(all[worker], "timeline"))
        record.spans.push_back({s[0], s[1], static_cast<int>(worker), s[2], s[3], s[4]});
  }
  if (record.spans.empty()) return record;
  const double begin = std::ranges::min(record.spans, {}, &TimelineSpan::begin).begin;
  for (TimelineSpan& span : record.spans) span.begin -= begin;
  return record;
}

}  // namespace artel
