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
#include "artel/run/folder/identity.h"
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
  std::vector<fs::path> older = checkpoint::list_checkpoints(folder.checkpoints());
  older.pop_back();
  if (const auto best = checkpoint::best_checkpoint(folder.checkpoints())) std::erase(older, *best);
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder.path());
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (std::ranges::count(older, entry->path()) > 0)
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

bool same_content(const fs::path& a, const fs::path& b) {
  if (fs::is_directory(a) && fs::is_directory(b))
    return std::ranges::all_of(fs::directory_iterator(b), [&](const fs::directory_entry& entry) {
      return same_content(a / entry.path().filename(), entry.path());
    });
  return fs::is_regular_file(a) && fs::is_regular_file(b) && fs::file_size(a) == fs::file_size(b) &&
         (fs::file_size(a) == 0 ||
          std::ranges::equal(MappedFile(a).bytes(), MappedFile(b).bytes()));
}

// Moves files into a folder. Files with other content that they replace are moved to `aside`.
void replace_files(const fs::path& from, const fs::path& into, const fs::path& aside) {
  fs::create_directories(into);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path target = into / entry.path().filename();
    if (fs::exists(target) && !same_content(entry.path(), target)) {
      fs::create_directories(aside);
      fs::rename(target, aside / target.filename());
    }
    fs::remove_all(target);
    fs::rename(entry.path(), target);
  }
  fs::remove(from);
}

// Moves the checkpoints last, because they make the other files valid. Returns the path for
// replaced files, which exists only if files were replaced.
fs::path install(const fs::path& from, const RunFolder& folder) {
  prepend_earlier_metrics(folder.path() / "metrics.jsonl", from / "metrics.jsonl");
  const fs::path name = folder.checkpoints().filename(), aside = path_aside(folder);
  const fs::path checkpoints = from.string() + "." + name.string();
  fs::remove_all(checkpoints);
  fs::rename(from / name, checkpoints);
  replace_files(from, folder.path(), aside);
  replace_files(checkpoints, folder.checkpoints(), aside / name);
  return aside;
}

// The run of a worker that resumes, as a text of three lines.
struct Offer {
  bool resumes = false;
  int64_t step = kNone;
  std::string identity;  // empty if its folder holds no run
  std::string folder;
};

// A folder that cannot be read does not keep other workers from resuming.
Offer offer_of(const comm::Group& group, const RunFolder& own, bool resumes) {
  Offer offer = {.resumes = resumes, .folder = own.path().string()};
  if (resumes) try {
      offer.identity = identity_of(own);
      offer.step = newest_step(own);
    } catch (const Error& error) {
      if (group.rank() == 0) throw;
      log(LogLevel::warning, "ignoring {} of {}: {}", offer.folder,
          worker_name(group, group.rank()), error.what());
    }
  return offer;
}

std::string to_text(const Offer& offer) {
  return offer.resumes ? fmt::format("{}\n{}\n{}", offer.step, offer.identity, offer.folder) : "";
}

Offer offer_from_text(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string> lines = split(text, '\n');
  require(lines.size() >= 3, ErrorKind::corrupt, "[resume] offer of a run: got '{}'", text);
  return {true, std::stoll(lines[0]), lines[1],
          join(std::vector(lines.begin() + 2, lines.end()), "\n")};
}

std::string name_of(const comm::Group& group, const Offer& offer, size_t rank) {
  return fmt::format("{} of {} (step {})", offer.folder, worker_name(group, static_cast<int>(rank)),
                     offer.step);
}

// The run to resume: worker 0's, or the only one that the others have.
std::string run_to_resume(const comm::Group& group, const std::vector<Offer>& offers) {
  if (!offers.front().identity.empty()) return offers.front().identity;
  std::optional<size_t> found;
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    if (offers[rank].step < 0) continue;
    require(!found || offers[*found].identity == offers[rank].identity, ErrorKind::invalid_argument,
            "[--resume] found different runs, and {} has none: {}, {}; remove or rename the one "
            "that should not continue",
            worker_name(group, 0), name_of(group, offers[found.value_or(0)], found.value_or(0)),
            name_of(group, offers[rank], rank));
    if (!found) found = rank;
  }
  return found ? offers[*found].identity : "";
}

// On worker 0: the rank of the worker with the newest checkpoint of the run to resume.
int newest_of(const comm::Group& group, const std::vector<Offer>& offers) {
  const std::string identity = run_to_resume(group, offers);
  size_t newest = 0;
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    if (offers[rank].step < 0) continue;
    if (offers[rank].identity != identity)
      log(LogLevel::warning, "ignoring {}: it holds a different run from {} of {}",
          name_of(group, offers[rank], rank), offers.front().folder, worker_name(group, 0));
    else if (offers[rank].step > offers[newest].step)
      newest = rank;
  }
  return static_cast<int>(newest);
}

}  // namespace

void bring_newest_run(comm::Group& group, const RunFolder& own, bool resumes) {
  std::vector<Offer> offers;
  for (const std::string& text : gather_text(group, to_text(offer_of(group, own, resumes))))
    offers.push_back(offer_from_text(text));
  const bool leads = group.rank() == 0;
  const int newest = leads && offers.front().resumes ? newest_of(group, offers) : 0;
  const int source = std::stoi(broadcast_text(group, std::to_string(newest)));
  if (source == 0) return;
  if (group.rank() == source) send_run(group, own);
  if (leads) {
    const fs::path incoming = own.path().string() + ".incoming";
    fs::remove_all(incoming);
    const size_t bytes = receive_run(group, source, incoming);
    const fs::path aside = install(incoming, own);
    const int64_t before = offers.front().step;
    log(LogLevel::info,
        "{} on {} was copied from {} ({}): it has step {}, {}; the run is stored here from now "
        "on{}",
        own.path().string(), group.hosts().front(), worker_name(group, source),
        format_bytes(static_cast<double>(bytes)), offers[static_cast<size_t>(source)].step,
        before < 0 ? std::string("this machine had none")
                   : fmt::format("this machine had step {}", before),
        fs::exists(aside) ? fmt::format("; replaced files are in {}", aside.string()) : "");
  }
  group.barrier({.label = "newest checkpoint", .timeout = kSecondsToSend});
}

std::string text_at_first(comm::Group& group, const fs::path& file) {
  return broadcast_text(group, group.rank() == 0 && fs::exists(file) ? read_file(file) : "");
}

}  // namespace artel
