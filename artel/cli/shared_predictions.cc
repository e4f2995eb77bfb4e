#include "artel/cli/shared_predictions.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/comm/group.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

// A message of any length: first how long it is.
void send_text(comm::Group& group, int peer, std::string_view text, Deadline deadline) {
  const uint64_t size = text.size();
  group.send(peer, 0, std::as_bytes(std::span(&size, 1))).wait(deadline);
  group.send(peer, 0, std::as_bytes(std::span(text))).wait(deadline);
}

std::string receive_text(comm::Group& group, int peer, Deadline deadline) {
  uint64_t size = 0;
  group.receive(peer, 0, std::as_writable_bytes(std::span(&size, 1))).wait(deadline);
  std::string text(size, '\0');
  group.receive(peer, 0, std::as_writable_bytes(std::span(text))).wait(deadline);
  return text;
}

// Files one by one, but consecutive pictures together.
std::vector<std::vector<std::string>> sources_of(const std::vector<std::string>& files,
                                                 const SavedRun& run) {
  std::vector<std::vector<std::string>> sources;
  bool pictures = false;
  for (const std::string& file : files) {
    const bool picture = is_one_picture(file, run);
    if (!picture || !pictures) sources.emplace_back();
    sources.back().push_back(file);
    pictures = picture;
  }
  return sources;
}

struct Turn {
  bool more = false;
  std::optional<SampleBatch> batch = {};  // if it is this worker's
};

}  // namespace

PredictionOutput::PredictionOutput(const std::string& path) : stream_(nullptr, std::fclose) {
  if (path.empty()) return;
  if (!fs::exists(path) || fs::is_regular_file(path)) {
    file_ = std::make_unique<AtomicFile>(path);
    return;
  }
  stream_.reset(std::fopen(path.c_str(), "wb"));
  require(stream_ != nullptr, ErrorKind::io, "[{}] cannot open: {}", path, std::strerror(errno));
}

void PredictionOutput::write(std::string_view text) {
  if (file_) return file_->write(std::as_bytes(std::span(text)));
  std::FILE* const stream = stream_ ? stream_.get() : stdout;
  errno = 0;
  require(
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0,
      ErrorKind::io, "[predictions] cannot be written: {}", std::strerror(errno));
}

void PredictionOutput::finish() {
  if (file_) file_->finish();
}

void share_predictions(const SavedRun& run, const std::vector<std::string>& files,
                       PredictionLines& lines, Cluster& cluster,
                       const std::function<void(std::string_view)>& write,
                       const std::function<void(const std::string&, double)>& progress) {
  const int workers = cluster.size(), own = cluster.rank();
  const auto deadline = [&] { return Deadline::after(cluster.options().timeout); };
  int64_t turn = 0;
  for (const std::vector<std::string>& paths : sources_of(files, run)) {
    require(workers == 1 || paths.front() != "-", ErrorKind::invalid_argument,
            "predict: got - for {} workers, expected files; standard input has one reader",
            workers);
    const std::unique_ptr<SampleReader> reader = open_samples(paths, run);
    // The next batch is read while the network computes the last one.
    const auto read = [&](int64_t which) {
      return std::async(std::launch::async, [&, which]() -> Turn {
        if (which % workers != own) return {.more = reader->skip()};
        std::optional<SampleBatch> batch = reader->next();
        return {batch.has_value(), std::move(batch)};
      });
    };
    auto coming = read(turn);
    for (Turn now = coming.get(); now.more; now = coming.get()) {
      const auto owner = static_cast<int>(turn % workers);
      coming = read(++turn);
      if (!now.batch) {
        if (own == 0) write(receive_text(*cluster.group(), owner, deadline()));
        continue;
      }
      std::string text;  // nothing for a batch of broken pictures
      if (now.batch->inputs.bytes() > 0)
        text = lines.of(paths.front(), *now.batch,
                        run.trainer->predict(now.batch->inputs, lines.output()));
      if (own > 0) {
        send_text(*cluster.group(), 0, text, deadline());
      } else {
        write(text);
        if (now.batch->share > 0) progress(paths.front(), now.batch->share);
      }
    }
  }
}

}  // namespace artel::cli
