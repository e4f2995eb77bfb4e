#include "artel/run/folder/newest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/cluster/worker_name.h"
#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kTag = 1 << 20;
constexpr size_t kSentPieceBytes = 32 << 20;
constexpr double kSecondsToSend = 3600;  // for the others to wait while files are sent
constexpr int64_t kNone = -1;

// The step of the newest checkpoint, or kNone. A finished rename makes a checkpoint complete.
int64_t newest_step(const RunFolder& folder) {
  if (!fs::is_directory(folder.checkpoints())) return kNone;
  const std::vector<fs::path> all = checkpoint::list_checkpoints(folder.checkpoints());
  if (all.empty()) return kNone;
  const std::string name = all.back().filename();
  int64_t step = kNone;
  const size_t begin = std::min(name.find_first_of("0123456789"), name.size());
  std::from_chars(name.data() + begin, name.data() + name.size(), step);
  return step;
}

// Files that belong to a process that is running, not to the run.
bool belongs_to_process(const RunFolder& folder, const fs::path& file) {
  return file == folder.lock() || file == folder.live() || file == folder.workers() ||
         file == folder.trace_request() || file == folder.trace_answer() ||
         file == folder.failure();
}

// All files of the run except older checkpoints, relative to its folder.
std::vector<fs::path> files_of(const RunFolder& folder) {
  const std::vector<fs::path> all = checkpoint::list_checkpoints(folder.checkpoints());
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder.path());
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (std::ranges::count(all, entry->path()) > 0 && entry->path() != all.back())
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && !belongs_to_process(folder, entry->path()))
      files.push_back(entry->path().lexically_relative(folder.path()));
  }
  std::ranges::sort(files);
  return files;
}

// A file in the list that goes ahead of the contents: "SIZE NAME".
struct ListedFile {
  size_t bytes = 0;
  fs::path name;
};

std::string list_text(const RunFolder& folder, const std::vector<fs::path>& files) {
  std::string text;
  for (const fs::path& file : files)
    text += fmt::format("{} {}\n", fs::file_size(folder.path() / file), file.string());
  return text;
}

// Names lead nowhere but below the folder.
std::vector<ListedFile> listed_files(const std::string& text) {
  std::vector<ListedFile> files;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    require(space != line.npos, ErrorKind::corrupt, "[resume] list of files: got '{}'", line);
    ListedFile file = {std::stoull(line.substr(0, space)), line.substr(space + 1)};
    const fs::path plain = file.name.lexically_normal();
    require(plain.is_relative() && !plain.empty() && *plain.begin() != "..", ErrorKind::corrupt,
            "[resume] list of files: got '{}', expected a name below the folder",
            file.name.string());
    files.push_back(std::move(file));
  }
  return files;
}

void wait_for(comm::Group& group, comm::Handle handle) {
  handle.wait(Deadline::after(group.timeout()));
}

void send_text(comm::Group& group, const std::string& text) {
  const uint64_t size = text.size();
  wait_for(group, group.send(0, kTag, std::as_bytes(std::span(&size, 1))));
  wait_for(group, group.send(0, kTag, std::as_bytes(std::span(text))));
}

std::string receive_text(comm::Group& group, int from) {
  uint64_t size = 0;
  wait_for(group, group.receive(from, kTag, std::as_writable_bytes(std::span(&size, 1))));
  std::string text(size, '\0');
  wait_for(group, group.receive(from, kTag, std::as_writable_bytes(std::span(text))));
  return text;
}

void send_run(comm::Group& group, const RunFolder& folder) {
  const std::vector<fs::path> files = files_of(folder);
  send_text(group, list_text(folder, files));
  for (const fs::path& name : files) {
    const MappedFile file(folder.path() / name);
    for (std::span<const std::byte> rest = file.bytes(); !rest.empty();) {
      const std::span<const std::byte> piece = rest.first(std::min(rest.size(), kSentPieceBytes));
      wait_for(group, group.send(0, kTag, piece));
      rest = rest.subspan(piece.size());
    }
  }
}

// Returns the bytes that have come.
size_t receive_run(comm::Group& group, int from, const fs::path& into) {
  size_t all = 0;
  std::vector<std::byte> piece;
  for (const ListedFile& listed : listed_files(receive_text(group, from))) {
    const fs::path path = into / listed.name;
    fs::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    for (size_t rest = listed.bytes; rest > 0; rest -= piece.size()) {
      piece.resize(std::min(rest, kSentPieceBytes));
      wait_for(group, group.receive(from, kTag, piece));
      file.write(reinterpret_cast<const char*>(piece.data()), std::ssize(piece));
    }
    file.close();
    require(file.good(), ErrorKind::io, "[{}] cannot be written", path.string());
    all += listed.bytes;
  }
  return all;
}

int64_t step_of_line(const std::string& line) {
  constexpr std::string_view kKey = "\"step\":";
  const size_t at = line.find(kKey);
  return at == line.npos ? kNone : std::strtoll(line.c_str() + at + kKey.size(), nullptr, 10);
}

// Copies the metrics of earlier steps than the first one in `file` from the earlier folder, because
// the worker that took over has only the most recent ones.
void prepend_earlier_metrics(const fs::path& earlier, const fs::path& file) {
  if (!fs::exists(earlier) || !fs::exists(file)) return;
  const std::string later = read_file(file);
  const int64_t first = step_of_line(later.substr(0, later.find('\n')));
  std::string text;
  for (const std::string& line : split(read_file(earlier), '\n')) {
    const int64_t step = step_of_line(line);
    if (!line.empty() && step >= 0 && step < first) text += line + "\n";
  }
  write_file_atomically(file, text + later);
}

// Replaces the files in `folder`. The checkpoint is moved last, because it makes the others valid.
void install(const fs::path& from, const RunFolder& folder) {
  prepend_earlier_metrics(folder.path() / "metrics.jsonl", from / "metrics.jsonl");
  fs::create_directories(folder.checkpoints());
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path target = folder.path() / entry.path().filename();
    if (entry.path().filename() == folder.checkpoints().filename()) continue;
    fs::remove_all(target);
    fs::rename(entry.path(), target);
  }
  for (const fs::directory_entry& entry :
       fs::directory_iterator(from / folder.checkpoints().filename())) {
    const fs::path target = folder.checkpoints() / entry.path().filename();
    fs::remove_all(target);
    fs::rename(entry.path(), target);
  }
  fs::remove_all(from);
}

}  // namespace

void bring_newest_run(comm::Group& group, const RunFolder& own, bool resumes) {
  struct Offer {
    int64_t resumes, step;
  };
  const Offer mine = {resumes ? 1 : 0, resumes ? newest_step(own) : kNone};
  std::vector<Offer> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "newest checkpoints"});
  if (all.front().resumes == 0) return;
  const auto newest = std::ranges::max_element(all, {}, &Offer::step);
  if (newest->step <= all.front().step) return;
  const int source = static_cast<int>(newest - all.begin());
  if (group.rank() == source) send_run(group, own);
  if (group.rank() == 0) {
    const fs::path incoming = own.path().string() + ".incoming";
    fs::remove_all(incoming);
    const size_t bytes = receive_run(group, source, incoming);
    install(incoming, own);
    log(LogLevel::info,
        "{} on {} was copied from {} ({}): it has step {}, {}; the run is stored here from now on",
        own.path().string(), group.hosts().front(), worker_name(group, source),
        format_bytes(static_cast<double>(bytes)), newest->step,
        all.front().step < 0 ? std::string("this machine had none")
                             : fmt::format("this machine had step {}", all.front().step));
  }
  group.barrier({.label = "newest checkpoint", .timeout = kSecondsToSend});
}

std::string text_at_first(comm::Group& group, const fs::path& file) {
  return broadcast_text(group, group.rank() == 0 && fs::exists(file) ? read_file(file) : "");
}

}  // namespace artel
