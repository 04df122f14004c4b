-- A modulefile for Lmod. Unpack the archive of a release into PREFIX/sgtrace/VERSION and
-- copy this file to MODULEPATH/sgtrace/VERSION.lua; set PREFIX below.
help([[Post-mortems of LLM serving, offline: 'sgtrace help' lists the commands.]])
whatis("Name: sgtrace")
whatis("Version: " .. myModuleVersion())
whatis("Description: reads SGLang request traces, PyTorch profiler traces, and Nsight Systems exports")
whatis("URL: https://github.com/sgtrace/sgtrace")

local prefix = "/opt/apps"
local root = pathJoin(prefix, "sgtrace", myModuleVersion())
prepend_path("PATH", root)
prepend_path("MANPATH", pathJoin(root, "man"))
