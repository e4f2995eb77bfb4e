#include "artel/train/loop/kept_states.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

constexpr std::string_view kWorker = "worker ", kStrategy = "strategy ";
constexpr size_t kMostWorkers = 1 << 16;

// Names used by earlier versions, in which only two strategies had a state.
constexpr const char *kEarlierLocalSteps = "local steps", *kEarlierInStep = "auto",
                     *kEarlierPurpose = "purpose", *kEarlierVelocity = "outer velocity/";

// The owner of the tensors of workers: training in step or local steps.
std::string owner_before(const StrategyStates& states) {
  const auto found = states.find(kEarlierLocalSteps);
  return found != states.end() && found->second.values.contains(kEarlierPurpose)
             ? kEarlierLocalSteps
             : kEarlierInStep;
}

void read_earlier_values(const nlohmann::json& text, StrategyStates& states) {
  if (text.contains("saving") && text["saving"].at("local_steps") > 1)
    states[kEarlierLocalSteps].values = {
        {"local_steps", std::to_string(text["saving"].at("local_steps").get<int64_t>())},
        {"compress", text["saving"].at("compress").get<std::string>()}};
  const std::string purpose = text.value("own_purpose", "");
  if (!purpose.empty())
    states[purpose.find(" local steps") != std::string::npos ? kEarlierLocalSteps : kEarlierInStep]
        .values[kEarlierPurpose] = purpose;
}

// The announcement that a worker needs to receive a tensor.
struct Announced {
  std::string name;
  Shape shape;
  DType type = DType::f32;
  int64_t worker = -1;  // its owner; -1: all workers have the same

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(type); }
};

std::string announcement_of(const NamedTensors& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    const std::optional<size_t> worker = worker_of(name);
    text += fmt::format("{} {} {}", worker ? static_cast<int64_t>(*worker) : -1,
                        static_cast<int>(tensor.dtype()), tensor.shape().rank());
    for (const int64_t extent : tensor.shape().extents()) text += fmt::format(" {}", extent);
    text += fmt::format(" {}\n", name);
  }
  return text;
}

std::vector<Announced> parse_announcement(const std::string& text) {
  std::vector<Announced> all;
  std::istringstream lines(text);
  Announced each;
  int type = 0;
  size_t rank = 0;
  while (lines >> each.worker >> type >> rank) {
    std::vector<int64_t> extents(rank);
    for (int64_t& extent : extents) lines >> extent;
    lines.ignore();
    std::getline(lines, each.name);
    each.shape = Shape(extents);
    each.type = static_cast<DType>(type);
    all.push_back(each);
  }
  return all;
}

// The tensors of single workers in the order of workers, without those of workers that do not
// exist.
std::vector<std::byte> joined_by_worker(const NamedTensors& tensors, int workers) {
  std::vector<std::byte> bytes;
  for (size_t worker = 0; worker < static_cast<size_t>(workers); ++worker)
    for (const auto& [name, tensor] : tensors)
      if (worker_of(name) == worker)
        bytes.insert(bytes.end(), tensor.raw(), tensor.raw() + tensor.bytes());
  return bytes;
}

}  // namespace

std::string name_of_worker(size_t worker, std::string_view name) {
  return fmt::format("{}{}/{}", kWorker, worker, name);
}

std::optional<size_t> worker_of(std::string_view name) {
  if (!name.starts_with(kWorker)) return {};
  size_t worker = 0;
  const char* const end = name.data() + name.size();
  const auto [slash, error] = std::from_chars(name.data() + kWorker.size(), end, worker);
  if (error != std::errc{} || slash == end || *slash != '/' || worker >= kMostWorkers) return {};
  return worker;
}

void drop_tensors_of_workers(StrategyState& state) {
  std::erase_if(state.tensors,
                [](const NamedTensor& each) { return worker_of(each.name).has_value(); });
}

std::string to_text(const OwnSteps& steps) {
  nlohmann::json finished = nlohmann::json::array();
  for (const auto& [worker, step] : steps.finished) finished.push_back({worker, step});
  return nlohmann::json({{"step", steps.step}, {"finished", finished}, {"shares", steps.shares}})
      .dump();
}

std::optional<OwnSteps> own_steps(const StrategyState& state) {
  const auto found = state.values.find(std::string(kOwnSteps));
  if (found == state.values.end()) return std::nullopt;
  try {
    const nlohmann::json json = parse_json(found->second, kOwnSteps);
    OwnSteps steps = {.step = json.at("step")};
    for (const nlohmann::json& item : json.at("finished")) {
      const int worker = item.at(0);
      const int64_t step = item.at(1);
      require(step >= 0, ErrorKind::corrupt, "[checkpoint] {}: got {} of worker {}", kOwnSteps,
              step, worker);
      steps.finished[worker] = step;
    }
    if (json.contains("shares")) json.at("shares").get_to(steps.shares);
    return steps;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[checkpoint] {}: not readable: {}", kOwnSteps, error.what());
  }
}

NamedTensors to_tensors(const StrategyStates& states) {
  NamedTensors tensors;
  for (const auto& [owner, state] : states)
    for (const NamedTensor& each : state.tensors)
      tensors.push_back({fmt::format("{}{}/{}", kStrategy, owner, each.name), each.tensor});
  return tensors;
}

nlohmann::json to_json(const StrategyStates& states) {
  nlohmann::json text = nlohmann::json::object();
  for (const auto& [owner, state] : states) text[owner] = state.values;
  return text;
}

void read_values(const nlohmann::json& text, StrategyStates& states) {
  StrategyStates read;
  if (text.contains("strategies"))
    for (const auto& [owner, values] : text["strategies"].items())
      read[owner].values = values.get<std::map<std::string, std::string>>();
  else
    read_earlier_values(text, read);
  for (auto& [owner, state] : read)
    if (const auto before = states.find(owner); before != states.end())
      state.tensors = std::move(before->second.tensors);
  states = std::move(read);
}

bool read_tensor(const NamedTensor& tensor, StrategyStates& states) {
  const std::string_view name = tensor.name;
  if (name.starts_with(kStrategy)) {
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return false;
    const std::string_view owner = name.substr(kStrategy.size(), slash - kStrategy.size());
    states[std::string(owner)].tensors.push_back(
        {std::string(name.substr(slash + 1)), tensor.tensor});
    return true;
  }
  const bool velocity = name.starts_with(kEarlierVelocity);
  if (!velocity && !worker_of(name)) return false;
  states[velocity ? kEarlierLocalSteps : owner_before(states)].tensors.push_back(tensor);
  return true;
}

NamedTensors share_tensors(comm::Group& group, const NamedTensors& kept, int root) {
  const bool here = group.rank() == root;
  const std::vector<Announced> all =
      parse_announcement(broadcast_text(group, here ? announcement_of(kept) : "", root));
  if (all.empty()) return {};
  std::vector<size_t> sizes(static_cast<size_t>(group.size()));  // bytes of workers' own tensors
  for (const Announced& each : all)
    if (each.worker >= 0 && each.worker < group.size())
      sizes[static_cast<size_t>(each.worker)] += each.bytes();
  std::vector<std::byte> own(sizes[static_cast<size_t>(group.rank())]);
  group.scatter(here ? joined_by_worker(kept, group.size()) : std::vector<std::byte>(), own, root,
                sizes, {.label = "states of workers"});
  NamedTensors mine;
  const std::byte* at = own.data();
  for (size_t i = 0; i < all.size(); ++i) {
    const Announced& each = all[i];
    if (each.worker >= 0 && (here || each.worker != group.rank())) continue;
    Tensor tensor = here ? kept[i].tensor : Tensor(each.shape, each.type);
    if (each.worker < 0)
      group.broadcast({tensor.raw(), each.bytes()}, root, {.label = "state of the strategy"});
    else
      std::copy_n(std::exchange(at, at + each.bytes()), each.bytes(), tensor.raw());
    mine.push_back({each.name, std::move(tensor)});
  }
  return here ? kept : mine;
}

}  // namespace artel
