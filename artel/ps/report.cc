#include "artel/ps/report.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::ps {
namespace {

using Json = nlohmann::json;

}  // namespace

Report& Report::operator+=(const Report& other) {
  for (const auto& [updates, count] : other.staleness) staleness[updates] += count;
  for (const auto& [worker, finished] : other.lost) lost[worker] = std::max(lost[worker], finished);
  nonzeros += other.nonzeros;
  penalty += other.penalty;
  return *this;
}

std::string to_text(const Report& report) {
  // Lists of pairs, because the keys of JSON objects would be text.
  Json staleness = Json::array(), lost = Json::array();
  for (const auto& [updates, count] : report.staleness) staleness.push_back({updates, count});
  for (const auto& [worker, finished] : report.lost) lost.push_back({worker, finished});
  return Json({{"staleness", staleness},
               {"lost", lost},
               {"nonzeros", report.nonzeros},
               {"penalty", report.penalty}})
      .dump();
}

Report report_from_text(std::string_view text) {
  try {
    const Json json = parse_json(text, "ps report");
    Report report = {.staleness = {},
                     .lost = {},
                     .nonzeros = json.at("nonzeros"),
                     .penalty = json.at("penalty")};
    for (const Json& item : json.at("staleness")) report.staleness[item.at(0)] = item.at(1);
    for (const Json& item : json.at("lost")) report.lost[item.at(0)] = item.at(1);
    return report;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] report: not readable: {}", error.what());
  }
}

}  // namespace artel::ps
