// Transfers the newest state of a run to worker 0 from any machine.
//
// When the machine of worker 0 is lost, its successor writes its own run folder. When the run is
// resumed later, worker 0 may have an older folder, or none.
#pragma once

#include "artel/cluster/membership.h"
#include "artel/run/folder/run_folder.h"

namespace artel {

// Collective, after worker 0 has claimed its folder. Each worker offers the newest checkpoint of
// its folder. If one is newer than worker 0's and of the same run (identity.h), its worker sends
// it, the best checkpoint, and the other files of the folder to worker 0, and the log says so.
// Different files that they replace are moved aside. Folders of other runs are ignored, and the log
// names them. Does nothing if worker 0 does not resume. Throws if worker 0 has no run and the
// others have different ones.
void bring_newest_run(comm::Group& group, const RunFolder& own, bool resumes);

// Collective: sends the text of a file at worker 0 to all workers. Empty if it does not exist.
std::string text_at_first(comm::Group& group, const std::filesystem::path& file);

}  // namespace artel
