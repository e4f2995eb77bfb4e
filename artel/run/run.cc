#include "artel/run/run.h"

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/cluster/entrance.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/servers_inside.h"
#include "artel/cluster/token.h"
#include "artel/comm/transports/transports.h"
#include "artel/run/config/setup.h"
#include "artel/run/folder/newest_run.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/interrupt.h"
#include "artel/run/samples/samples.h"
#include "artel/run/train_network.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/step/instructions.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// Options for finding the workers of a run by its folder.
comm::GroupOptions place_in(const RunFolder& folder) {
  const RunWorkers workers = folder.load_workers();
  comm::GroupOptions place = {
      .transport = workers.transport, .address = workers.address, .token = workers.token};
  for (const RunWorkers::Worker& worker : workers.workers) place.doors.push_back(worker.door);
  return place;
}

// Records the error for later inspection of the run. A disk error must not hide it.
void note_failure(const RunFolder& folder, const std::string& text) {
  try {
    write_file_atomically(folder.failure(), text + "\n");
  } catch (const Error& error) {
    log(LogLevel::warning, "{}", error.what());
  }
}

// Runs joint preparations of the workers. Repeats them without workers that are lost on the way.
template <typename Body>
auto with_whoever_is_left(Cluster& cluster, const Body& body) {
  while (true) try {
      return body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::communication || !cluster.elastic() || cluster.outside())
        throw;
      cluster.regroup(error, /*progressed=*/false);
    }
}

}  // namespace

Run::Run(std::string text, std::string where, fs::path base, RunOptions options)
    : text_(std::move(text)),
      where_(std::move(where)),
      base_(std::move(base)),
      options_(std::move(options)),
      config_(parse_config(text_, where_, options_.overrides, base_)) {}

Run::Run(const fs::path& file, RunOptions options)
    : Run(read_config_text(file), file.string(), fs::absolute(file).parent_path(),
          std::move(options)) {}

Run::Run(const RunConfig& config, RunOptions options)
    : Run(to_toml(config), "run", fs::current_path(), std::move(options)) {}

Run Run::open(const fs::path& folder, RunOptions options) {
  const std::optional<RunFolder> found = find_run(folder);
  require(found.has_value(), ErrorKind::not_found, "[{}] is not the folder of a run",
          folder.string());
  options.out = found->path().string();
  return Run(found->config(), std::move(options));
}

Run::~Run() = default;
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

void Run::set(std::string_view key, std::string_view value) {
  std::vector<std::string> overrides = options_.overrides;
  overrides.push_back(fmt::format("{}={}", key, value));
  config_ = parse_config(text_, where_, overrides, base_);
  options_.overrides = std::move(overrides);
  saved_.reset();
}

// The options for joining the others; empty if this process is alone.
std::optional<comm::GroupOptions> Run::place() const {
  const int servers = server_count(config_);
  std::optional<comm::GroupOptions> place = launched_group();
  const ClusterConfig& cluster = config_.cluster;
  if (const std::optional<MeetingPlace>& join = options_.join) {
    // A run starts when it has enough workers. Later workers join it.
    const bool by_folder = fs::is_directory(join->address);
    require(
        by_folder || join->address.find(':') != std::string::npos, ErrorKind::invalid_argument,
        "--join: got '{}', expected an existing folder of a running training, or HOST:PORT such "
        "as 10.0.0.1:29500",
        join->address);
    place = {.transport = "gloo",
             .rank = join->rank,
             .size = static_cast<int>(cluster.workers.is_range ? cluster.workers.least
                                                               : cluster.workers.most) +
                     servers,
             .address = by_folder ? "" : first_that_answers(split(join->address, ',')),
             .token = {},
             .interface = join->interface};
    if (by_folder)
      *place = place_in(RunFolder(join->address));
    else
      place->token = joining_token(join->token, join->token_file, place->address);
  }
  if (!place) return {};
  const std::string& wanted = cluster.transport;
  // Workers that meet in the same way were started by the same launcher.
  if (wanted != "auto" &&
      comm::find_transport(wanted).meeting == comm::find_transport(place->transport).meeting)
    place->transport = wanted;
  require(
      wanted == "auto" || wanted == place->transport, ErrorKind::invalid_argument,
      "cluster.transport: got \"{}\", but these workers were started to connect through {}; try "
      "\"auto\"",
      wanted, place->transport);
  place->encrypt = cluster.encrypt;
  place->servers = servers;
  place->join_timeout = cluster.join_timeout;
  place->timeout = cluster.timeout;
  place->watch.patience = cluster.patience;
  place->wait = cluster.wait;
  if (cluster.workers.is_range) {
    place->least = static_cast<int>(cluster.workers.least);
    place->most = static_cast<int>(cluster.workers.most);
  }
  place->outlives_workers = outlives_workers(config_);
  place->elastic = is_elastic(config_);
  return place;
}

bool Run::lacks_workers() const {
  return (config_.cluster.workers.most > 1 || server_count(config_) > 0) && !place();
}

void Run::prepare_data() const { artel::prepare_data(config_); }

// The encoder of a table used in earlier training, so that samples stay the same.
std::shared_ptr<const data::TableEncoder> Run::learnt_table(Cluster& cluster) const {
  const RunFolder folder = choose_folder({where_, options_.out, options_.name, /*resume=*/true});
  // Only the machine of worker 0 is known to have the folder.
  comm::Group* const group = cluster.group();
  if (group && group->transport() != "shm") {
    const std::string text = text_at_first(*group, options_.resume ? folder.table() : fs::path());
    return text.empty() ? nullptr : data::TableEncoder::parse(text, folder.table().string());
  }
  if (!options_.resume) return {};
  return fs::exists(folder.table()) ? data::TableEncoder::load(folder.table()) : nullptr;
}

RunResult Run::train() {
  require(!lacks_workers(), ErrorKind::invalid_argument,
          "[{}] cluster: got {} and {}, but they were not started; try mpirun, "
          "or cluster.workers = 1 with a strategy that needs no servers",
          where_, counted(config_.cluster.workers.most, "worker"),
          counted(server_count(config_), "server"));
  const std::optional<comm::GroupOptions> place = this->place();
  std::optional<ServersInside> inside;
  if (place && config_.cluster.servers_inside) inside.emplace(*place);
  Cluster cluster = place ? Cluster(*place) : Cluster();
  return train(cluster);
}

// The samples of a step of all workers, as the run was begun with. Collective.
BatchSize Run::fixed_batch_size(Cluster& cluster) const {
  const BatchSize asked = config_.train.batch_size;
  if (!asked.per_worker) return asked;
  const bool by_folder = options_.join && fs::is_directory(options_.join->address);
  const RunFolder folder =
      by_folder ? RunFolder(options_.join->address)
                : choose_folder({where_, options_.out, options_.name, /*resume=*/true});
  std::string recorded;
  comm::Group* const group = cluster.group();
  if (group && group->transport() != "shm")
    recorded = text_at_first(*group, options_.resume ? folder.config() : fs::path());
  else if ((options_.resume || cluster.outside()) && fs::exists(folder.config()))
    recorded = read_file(folder.config());
  if (!recorded.empty())
    return parse_config(recorded, folder.config().string(), {}).train.batch_size;
  require(
      !cluster.outside(), ErrorKind::invalid_argument,
      "train.batch_size: got \"{} per worker\" for a worker that joins a run, expected the total "
      "of the run; try --set train.batch_size=N with the number in its config.toml",
      asked.samples);
  return asked.of(cluster.size());
}

RunResult Run::train(Cluster& cluster) {
  saved_.reset();
  trained_.reset();
  folder_.clear();
  if (cluster.is_server()) {
    // The process that stops the run stops the workers; servers end when the workers have left.
    std::optional<HandleSignals> ignored;
    if (options_.stop_on_signals) ignored.emplace(SIG_IGN);
    cluster.serve();
    return {.rank = -1};
  }
  RunResult result;
  RunConfig config = config_;
  std::optional<ClaimedFolder> folder;  // at worker 0
  const auto prepare = [&] {
    agree_on_instructions(config_.cluster.instructions, cluster);
    comm::Group* const group = cluster.group();
    if (group && options_.common_seed) {
      set("train.seed", broadcast_text(*group, fmt::format("{}", config_.train.seed)));
      config = config_;
    }
    const bool leads = cluster.rank() == 0 && !cluster.outside();
    const bool may_have_run_elsewhere = group && group->transport() != "shm";
    // No other process writes to the folder while the newest state is put into it.
    if (leads && !folder) {
      log_warnings(config_);
      const FolderRequest request = {where_, options_.out, options_.name, options_.resume};
      if (options_.resume && !may_have_run_elsewhere) require_run_to_resume(choose_folder(request));
      folder = claim_folder(request);
    }
    if (may_have_run_elsewhere)
      bring_newest_run(*group, choose_folder({where_, options_.out, options_.name, true}),
                       options_.resume);
    if (leads && options_.resume) {
      require_run_to_resume(folder->folder);
      folder->is_new = false;
    }
    config.train.batch_size = fixed_batch_size(cluster);
    return learnt_table(cluster);
  };
  const auto work = [&] {
    std::shared_ptr<const data::TableEncoder> table = with_whoever_is_left(cluster, prepare);
    TrainedNetwork trained = train_network(config, cluster, folder, options_, std::move(table));
    result = std::move(trained.result);
    if (options_.uses_network && trained.has_all_weights)
      trained_ = {std::move(trained.layout), std::move(trained.weights)};
    if (folder) folder_ = folder->folder.path();
  };
  const auto begin_until_it_works = [&] {
    while (true) try {
        return work();
      } catch (const NotBegun& error) {
        if (cluster.rank() == 0)
          log(LogLevel::warning, "{}; restarting the run with {}", error.what(),
              counted(cluster.size(), "worker"));
      }
  };
  try {
    cluster.attempt(begin_until_it_works);
  } catch (const std::exception& error) {
    if (folder && folder->is_new && !folder->begun)
      fs::remove_all(folder->folder.path());
    else if (folder && folder->begun)
      note_failure(folder->folder, error.what());
    throw;
  }
  result.rank = cluster.rank();
  result.folder = folder_;
  return result;
}

const SavedRun& Run::saved() {
  if (saved_) return *saved_;
  std::optional<RunFolder> folder;
  if (!trained_) {
    folder = choose_folder({where_, options_.out, options_.name, /*resume=*/true});
    require(fs::exists(folder->samples()), ErrorKind::not_found,
            "[{}] nothing has been trained there; try train() first", folder->path().string());
  }
  auto run = std::make_unique<SavedRun>(config_, folder ? folder->load_layout() : trained_->layout);
  if (folder) {
    run->load(weights_for(config_.model, folder->path()), folder->path().string());
    run->trained_on = folder->fingerprint();
    folder_ = folder->path();
  } else {
    run->load(tensors_of(trained_->weights.sources()), where_);
  }
  saved_ = std::move(run);
  return *saved_;
}

Evaluation Run::evaluate(Part part) { return saved().evaluate(part); }

Tensor Run::predict(const Tensor& rows) { return saved().trainer->predict(rows); }

Tensor Run::predict(const fs::path& file) {
  const SavedRun& run = saved();
  return predict(read_samples(file, run.layout, run.augment));
}

Predictor Run::predictor() {
  const SavedRun& run = saved();
  const int64_t threads = config_.cluster.threads;
  return Predictor(make_model(run.config.model, run.layout), run.sample(), run.trainer->weights(),
                   threads > 0 ? static_cast<int>(threads) : run.cluster->cores(),
                   config_.cluster.device);
}

const data::SampleLayout& Run::layout() { return saved().layout; }

}  // namespace artel
