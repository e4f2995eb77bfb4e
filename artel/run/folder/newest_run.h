// Transfers the newest state of a run to worker 0 from any machine.
//
// When the machine of worker 0 is lost, its successor writes its own run folder. When the run is
// resumed later, worker 0 may have an older folder, or none.
#pragma once

#include "artel/cluster/membership.h"
#include "artel/run/folder/run_folder.h"

namespace artel {

// Collective, before worker 0 claims its folder. Compares the newest checkpoints in the folders of
// all workers that resume. If another worker has a newer one than worker 0, that checkpoint and the
// other files of its folder are sent to worker 0, and the log says so. Does nothing if worker 0
// does not resume.
void bring_newest_run(comm::Group& group, const RunFolder& own, bool resumes);

// Collective: sends the text of a file at worker 0 to all workers. Empty if it does not exist.
std::string text_at_first(comm::Group& group, const std::filesystem::path& file);

}  // namespace artel
