#include "artel/train/loop/history.h"

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel {
namespace {

using comm::control::Participant;

nlohmann::json json_of(const Participant& worker) {
  return {worker.number, worker.host, worker.process, worker.place, worker.server};
}

Participant participant_in(const nlohmann::json& json) {
  return {.number = json.at(0),
          .host = json.at(1),
          .process = json.at(2),
          .door = {},
          .place = json.at(3),
          .server = json.at(4)};
}

nlohmann::json json_of(const ChangedWorkers& change) {
  nlohmann::json gone = nlohmann::json::array(), came = nlohmann::json::array();
  for (const auto& [worker, why] : change.gone) gone.push_back({json_of(worker), why});
  for (const Participant& worker : change.came) came.push_back(json_of(worker));
  return {{"gone", gone},
          {"came", came},
          {"staying", change.staying},
          {"step", change.step},
          {"at", change.at},
          {"seconds", change.seconds},
          {"until_next_step", change.until_next_step},
          {"repeated", change.repeated}};
}

ChangedWorkers change_in(const nlohmann::json& json) {
  ChangedWorkers change = {.gone = {},
                           .came = {},
                           .staying = json.at("staying").get<std::vector<int>>(),
                           .step = json.at("step"),
                           .at = json.at("at"),
                           .seconds = json.at("seconds"),
                           .until_next_step = json.at("until_next_step"),
                           .repeated = json.at("repeated")};
  for (const nlohmann::json& each : json.at("gone"))
    change.gone.push_back({participant_in(each.at(0)), each.at(1)});
  for (const nlohmann::json& each : json.at("came")) change.came.push_back(participant_in(each));
  return change;
}

}  // namespace

std::string to_text(const History& history) {
  nlohmann::json changes = nlohmann::json::array();
  for (const ChangedWorkers& change : history.changes) changes.push_back(json_of(change));
  return nlohmann::json(
             {{"seconds", history.seconds}, {"samples", history.samples}, {"changes", changes}})
      .dump();
}

History history_from_text(std::string_view text) {
  try {
    const nlohmann::json json = parse_json(text, "history of the run");
    History history = {.seconds = json.at("seconds"), .samples = json.at("samples")};
    for (const nlohmann::json& change : json.at("changes"))
      history.changes.push_back(change_in(change));
    return history;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[history of the run] not readable: {}", error.what());
  }
}

}  // namespace artel
