#include "artel/train/loop/checkpoint_copies.h"

#include <algorithm>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/tensor/tensor_source.h"
#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// Seconds that worker 0 may take to write the checkpoint before it sends it.
constexpr double kSecondsToWrite = 900;

constexpr comm::Call kCopyCall = {.label = "copy of a checkpoint"};

}  // namespace

CheckpointCopies::CheckpointCopies(comm::Group& all, bool keeps)
    : group_(all.split(keeps || all.rank() == 0 ? 0 : 1)) {}

// A line "STEP", a line "SIZE NAME" for each file, then the bytes of all files in pieces.
void CheckpointCopies::send(const fs::path& checkpoint) {
  std::vector<fs::path> files;
  std::string list;
  if (!checkpoint.empty()) {
    list = fmt::format("{}\n", checkpoint::step_of(checkpoint).value());
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint))
      files.push_back(entry.path());
  }
  for (const fs::path& file : files)
    list += fmt::format("{} {}\n", fs::file_size(file), file.filename().string());
  broadcast_text(group_, list, 0, kSecondsToWrite);
  for (const fs::path& path : files) {
    const MappedFile file(path);
    std::vector<std::byte> piece;
    for (std::span<const std::byte> rest = file.bytes(); !rest.empty();
         rest = rest.subspan(piece.size())) {
      const auto next = rest.first(std::min(rest.size(), kPieceBytes));
      piece.assign(next.begin(), next.end());
      group_.broadcast(piece, 0, kCopyCall);
    }
  }
}

// Receives all bytes even if the disk fails, because worker 0 and the other copies do not know
// that.
void CheckpointCopies::receive(const fs::path& folder, const checkpoint::SaveOptions& options) {
  std::istringstream list(broadcast_text(group_, "", 0, kSecondsToWrite));
  int64_t step = 0;
  if (!(list >> step)) return;
  size_t size = 0;
  std::string name;
  std::vector<std::byte> piece;
  std::vector<std::pair<std::string, size_t>> files;
  while (list >> size >> name) files.emplace_back(fs::path(name).filename(), size);
  size_t at = 0, left = files.empty() ? 0 : files.front().second;
  const auto next_piece = [&] {
    piece.resize(std::min(left, kPieceBytes));
    if (!piece.empty()) group_.broadcast(piece, 0, kCopyCall);
    left -= piece.size();
  };
  const auto next_file = [&] { left = ++at < files.size() ? files[at].second : 0; };
  try {
    checkpoint::save_files(
        folder, step,
        [&](const fs::path& empty) {
          for (; at < files.size(); next_file()) {
            AtomicFile file(empty / files[at].first);
            while (left > 0) {
              next_piece();
              file.write(piece);
            }
            file.finish();
          }
        },
        options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    log(LogLevel::warning, "this copy of the checkpoint was not saved: {}", error.what());
  }
  for (; at < files.size(); next_file())
    while (left > 0) next_piece();
}

}  // namespace artel
