#include "artel/data/loader.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "artel/base/mutex.h"
#include "artel/base/time.h"

namespace artel::data {
namespace {

Shape with_batch(int64_t count, const Shape& sample) {
  std::vector<int64_t> extents = sample.extents();
  extents.insert(extents.begin(), count);
  return Shape(std::move(extents));
}

std::span<std::byte> row(Tensor& tensor, int64_t i, size_t bytes) {
  return {tensor.raw() + static_cast<size_t>(i) * bytes, bytes};
}

SampleLayout layout_after(const SampleLayout& layout, const Augmentation& augmentation) {
  SampleLayout result = layout;
  if (!augmentation.transforms.empty()) {
    require(layout.input_type == DType::f32, ErrorKind::invalid_argument,
            "augmentation of samples of type {}, expected f32 images",
            to_string(layout.input_type));
    result.input = augmentation.output_shape(layout.input);
  }
  if (augmentation.mixup > 0) {
    require(layout.input_type == DType::f32 && layout.target_kind == TargetKind::classes &&
                layout.target.rank() == 0,
            ErrorKind::invalid_argument, "mixup needs real inputs and one label for each sample");
    result.target_kind = TargetKind::values;
    result.target = {layout.classes};
  }
  return result;
}

}  // namespace

// The constant inputs of a batch, shared by all threads.
struct Loader::Source {
  DatasetPtr set;
  LoaderOptions options;
  Sampler sampler;
  SampleLayout layout;

  Source(DatasetPtr data_set, LoaderOptions given)
      : set(std::move(data_set)),
        options(std::move(given)),
        sampler(set->size(), options.sampling),
        layout(layout_after(set->layout(), options.augmentation)) {}

  LoaderState after(LoaderState state) const {
    state.position += options.sampling.batch_size;
    return normalised(state);
  }

  // A position at the end of an epoch, or too close to it for a whole batch, means the start of the
  // next.
  LoaderState normalised(LoaderState state) const {
    const int64_t least =
        options.sampling.last_batch == LastBatch::drop ? options.sampling.batch_size : 1;
    if (state.position + least > set->size()) return {state.epoch + 1, 0};
    return state;
  }

  // Samples of the global batch that begins there.
  int64_t total(LoaderState state) const {
    return std::min(options.sampling.batch_size, set->size() - state.position);
  }

  bool ended(LoaderState state) const {
    return options.epochs > 0 && state.epoch >= options.epochs;
  }

  Random random(const char* purpose, int64_t epoch, int64_t sample) const {
    return Random{options.sampling.seed, hash_name(purpose), static_cast<uint64_t>(epoch),
                  static_cast<uint64_t>(sample)};
  }

  // Reads and augments one sample; `target` is left as the set provides it.
  void read(int64_t epoch, int64_t sample, std::span<std::byte> input,
            std::span<std::byte> target) const {
    if (options.augmentation.transforms.empty()) {
      set->read(sample, input, target);
      return;
    }
    const Shape& shape = set->layout().input;
    Image image(shape[0], shape[1], shape[2]);
    set->read(sample, std::as_writable_bytes(std::span(image.pixels)), target);
    Random stream = random("augment", epoch, sample);
    options.augmentation.apply(image, stream);
    std::memcpy(input.data(), image.pixels.data(), input.size());
  }

  // Reads a sample and mixes it with another one. The partner is drawn from the whole set, not from
  // the batch, so the result does not depend on how batches are cut.
  void read_mixed(int64_t epoch, int64_t sample, std::span<std::byte> input,
                  std::span<std::byte> target) const {
    Random stream = random("mixup", epoch, sample);
    const float share = beta(stream, options.augmentation.mixup);
    const auto partner = static_cast<int64_t>(stream.below(static_cast<uint64_t>(set->size())));
    int32_t label = 0, other_label = 0;
    std::vector<float> other(input.size() / sizeof(float));
    read(epoch, sample, input, std::as_writable_bytes(std::span(&label, 1)));
    read(epoch, partner, std::as_writable_bytes(std::span(other)),
         std::as_writable_bytes(std::span(&other_label, 1)));
    auto* mixed = reinterpret_cast<float*>(input.data());
    for (size_t i = 0; i < other.size(); ++i) mixed[i] = share * mixed[i] + (1 - share) * other[i];
    auto* weights = reinterpret_cast<float*>(target.data());
    weights[label] += share;
    weights[other_label] += 1 - share;
  }

  Batch batch(LoaderState state, int64_t begin, int64_t end) const {
    const int64_t first = state.position + std::min(begin, total(state));
    const int64_t last = state.position + std::min(end, total(state));
    Batch result;
    result.total = total(state);
    result.epoch = state.epoch;
    result.position = state.position;
    result.samples = sampler.samples(state.epoch, first, last);
    result.x = Tensor(with_batch(last - first, layout.input), layout.input_type);
    if (layout.target_kind != TargetKind::none)
      result.y = Tensor(with_batch(last - first, layout.target), layout.target_type());
    const size_t input_bytes = layout.input_bytes(), target_bytes = layout.target_bytes();
    for (int64_t i = 0; i < result.size(); ++i) {
      const auto input = row(result.x, i, input_bytes);
      const auto target = row(result.y, i, target_bytes);
      if (options.augmentation.mixup > 0)
        read_mixed(state.epoch, result.samples[i], input, target);
      else
        read(state.epoch, result.samples[i], input, target);
    }
    return result;
  }
};

// Threads that make the batches from some state on and keep at most `prefetch` of them.
class Loader::Prefetcher {
 public:
  Prefetcher(const Source& source, LoaderState start, const Share& share)
      : source_(source), share_(share), cursor_(start) {
    const int threads = std::max(1, source.options.threads);
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      // Fewer make the same batches.
      require(!threads_.empty(), ErrorKind::unsupported,
              "[data] the system allows no thread to read samples: {}", error.what());
    }
  }
  ~Prefetcher() {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Batch take() {
    MutexLock lock(mutex_);
    ready_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return done_.count(taken_) > 0; });
    Result result = std::move(done_.extract(taken_).mapped());
    ++taken_;
    lock.unlock();
    room_.notify_one();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.batch);
  }

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };

  void work() {
    const int64_t most = std::max(1, source_.options.prefetch);
    MutexLock lock(mutex_);
    for (;;) {
      room_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return stop_ || started_ - taken_ < most; });
      if (stop_ || source_.ended(cursor_)) return;
      const int64_t number = started_++;
      const LoaderState state = std::exchange(cursor_, source_.after(cursor_));
      lock.unlock();
      Result result;
      try {
        const int64_t total = source_.total(state);
        result.batch = source_.batch(state, total * share_.first / share_.parts,
                                     total * share_.last / share_.parts);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      done_.emplace(number, std::move(result));
      ready_.notify_all();
    }
  }

  const Source& source_;
  const Share share_;
  Mutex mutex_;
  Condition ready_, room_;
  LoaderState cursor_ ARTEL_GUARDED_BY(mutex_);  // of the next batch to be started
  // Numbers of batches.
  int64_t started_ ARTEL_GUARDED_BY(mutex_) = 0;
  int64_t taken_ ARTEL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Result> done_ ARTEL_GUARDED_BY(mutex_);  // by number
  bool stop_ ARTEL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

Loader::Loader(DatasetPtr set, LoaderOptions options)
    : source_(std::make_unique<Source>(std::move(set), std::move(options))) {}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;

const Dataset& Loader::set() const { return *source_->set; }
const Sampler& Loader::sampler() const { return source_->sampler; }
const SampleLayout& Loader::layout() const { return source_->layout; }
LoaderState Loader::state() const { return state_; }
double Loader::seconds_waited() const { return waited_; }

std::optional<Batch> Loader::next() {
  if (source_->ended(state_)) return std::nullopt;
  if (!prefetcher_) prefetcher_ = std::make_unique<Prefetcher>(*source_, state_, share_);
  state_ = source_->after(state_);
  const auto start = Clock::now();
  Batch batch = prefetcher_->take();
  waited_ += seconds_between(start, Clock::now());
  return batch;
}

void Loader::seek(LoaderState state) {
  require(state.epoch >= 0 && state.position >= 0, ErrorKind::invalid_argument,
          "a loader cannot continue at epoch {}, position {}", state.epoch, state.position);
  prefetcher_.reset();
  state_ = source_->normalised(state);
}

void Loader::serve(int64_t first, int64_t last, int64_t parts) {
  require(0 <= first && first <= last && last <= parts && parts > 0, ErrorKind::invalid_argument,
          "parts [{}, {}) of a batch of {} parts", first, last, parts);
  prefetcher_.reset();
  share_ = {first, last, parts};
}

Batch Loader::batch(LoaderState state, int64_t begin, int64_t end) const {
  require(0 <= begin && begin <= end && end <= source_->options.sampling.batch_size &&
              state.position >= 0 && state.position <= source_->set->size(),
          ErrorKind::invalid_argument, "samples [{}, {}) of the batch at position {}", begin, end,
          state.position);
  return source_->batch(state, begin, end);
}

}  // namespace artel::data
