#include "artel/train/step/kept_features.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "artel/base/digest.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/shared_file.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/data/fetch.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

enum PartState : uint8_t { kFree = 0, kBegun = 1, kDone = 2 };

// The states of the parts, then the rows.
constexpr size_t kPage = 4096;
size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Samples as rows of a part: read and prepared.
Tensor kept_rows(const data::Dataset& set, const data::Augmentation& prepare,
                 const TensorType& type, int64_t begin, int64_t end, int64_t rows) {
  const data::SampleLayout& layout = set.layout();
  Tensor batch(batch_of(type, rows).shape, type.dtype);
  const size_t bytes = batch.bytes() / static_cast<size_t>(rows);
  std::vector<std::byte> target(layout.target_bytes());
  for (int64_t i = begin; i < end; ++i) {
    std::byte* const to = batch.raw() + static_cast<size_t>(i - begin) * bytes;
    if (prepare.transforms.empty()) {
      set.read(i, {to, bytes}, target);
      continue;
    }
    data::Image image(layout.input[0], layout.input[1], layout.input[2]);
    set.read(i, std::as_writable_bytes(std::span(image.pixels)), target);
    Random unused{0};
    prepare.apply(image, unused);
    std::memcpy(to, image.pixels.data(), bytes);
  }
  return batch;
}

Tensor kept_targets(const data::Dataset& set) {
  const data::SampleLayout& layout = set.layout();
  Tensor targets(batch_of({layout.target_type(), layout.target}, set.size()).shape,
                 layout.target_type());
  const size_t bytes = layout.target_bytes();
  for (int64_t i = 0; i < set.size(); ++i)
    set.read_target(i, {targets.raw() + static_cast<size_t>(i) * bytes, bytes});
  return targets;
}

std::string this_boot() {
  // After a crash of the machine, parts marked as finished may not have reached the disk.
  std::error_code none;
  constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
  return fs::exists(kBoot, none) ? read_file(kBoot) : "";
}

// Deletes files that were not used for long.
void forget_old_features(const fs::path& folder) {
  constexpr auto kUnused = std::chrono::days(3);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (fs::file_time_type::clock::now() - entry.last_write_time(ignored) > kUnused)
      fs::remove(entry.path(), ignored);
}

}  // namespace

data::DatasetPtr kept_features(const FeatureWork& work, const data::Dataset& set,
                               const data::Augmentation& prepare) {
  KernelChoices choices;
  Graph graph = inference_graph(work.below, batch_of(work.sample, work.rows)).graph;
  const std::string computation = to_string(graph);
  const Program program(std::move(graph), {.lanes = {.all = work.lanes}}, choices);
  const TensorType value = [&] {
    TensorType type = program.graph().type(program.graph().output_id("prediction"));
    const std::vector<int64_t>& extents = type.shape.extents();
    return TensorType{type.dtype, Shape({extents.begin() + 1, extents.end()})};
  }();
  Parameters parameters(program.parameter_entries());
  load_weights(parameters, work.weights);
  const auto block = std::as_bytes(parameters.block());
  std::string identity =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", work.key, set.size(), computation, work.lanes,
                  sha256(block), instruction_sets(choices), this_boot());
  const fs::path folder = data::data_folder() / "features";
  fs::create_directories(folder);
  forget_old_features(folder);
  const fs::path path = folder / sha256(std::as_bytes(std::span(identity)));

  const int64_t parts = (set.size() + work.rows - 1) / work.rows;
  const size_t row = static_cast<size_t>(value.shape.elements()) * sizeof(float);
  const size_t head = whole_pages(static_cast<size_t>(parts));
  const size_t bytes = head + static_cast<size_t>(set.size()) * row;
  const fs::space_info space = fs::space(folder);
  require(fs::exists(path) || space.available > bytes + (uint64_t{64} << 20), ErrorKind::io,
          "[{}] has no room for features of {}: {} are free; set ARTEL_DATA to a folder with free "
          "space, "
          "or train.cache = false",
          folder.string(), format_bytes(static_cast<double>(bytes)),
          format_bytes(static_cast<double>(space.available)));
  const auto file = std::make_shared<SharedFile>(path, bytes);
  auto* const states = reinterpret_cast<uint8_t*>(file->data());

  struct Place {
    ThreadPool serial{1, limit_library_threads};
    std::unique_ptr<Frame> frame;
  };
  std::vector<Place> places(static_cast<size_t>(work.threads));
  ThreadPool pool(work.threads, limit_library_threads);
  std::atomic<int64_t> next = 0;
  const auto compute = [&](Place& place, int64_t part) {
    const int64_t begin = part * work.rows, end = std::min(set.size(), begin + work.rows);
    if (!place.frame) place.frame = std::make_unique<Frame>(program, parameters);
    place.frame->set_input("x", kept_rows(set, prepare, work.sample, begin, end, work.rows));
    program.run(*place.frame, place.serial, {});
    const Tensor values = place.frame->output("prediction");
    std::memcpy(file->data() + head + static_cast<size_t>(begin) * row, values.raw(),
                static_cast<size_t>(end - begin) * row);
    std::atomic_ref(states[part]).store(kDone, std::memory_order_release);
  };
  // First the parts that no worker has started, then those that none has finished.
  for (const bool all : {false, true}) {
    next = 0;
    pool.run(work.threads, [&](int64_t thread) {
      for (int64_t part = next++; part < parts; part = next++) {
        std::atomic_ref state(states[part]);
        uint8_t expected = kFree;
        if (state.load(std::memory_order_acquire) == kDone) continue;
        if (all || state.compare_exchange_strong(expected, kBegun))
          compute(places[static_cast<size_t>(thread)], part);
      }
    });
  }
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  const Tensor features(batch_of(value, set.size()).shape, DType::f32, file->data() + head, file);
  const data::SampleLayout& layout = set.layout();
  return data::tensor_dataset(features, kept_targets(set), layout.classes, layout.class_names);
}

}  // namespace artel
