-- The environment of a job's tasks: /etc/flux/shell/lua.d/slingshot.lua. It does so at every level: a job of Flux within
-- a job, or of Flux within a job of Slurm, has what the broker of its node has.
local cxi = "/usr/bin/cxi"
local flux = "/usr/bin/flux"
local config = "/etc/cxi/cxi.toml"

local environment = {}
-- The job's name for the trees that it makes, which no other job of the reservation has.
local step

local function is_ours(name)
    return name:match("^SLINGSHOT_") or name:match("^FI_CXI_COLL_") or name:match("^FI_CXI_HWCOLL_")
end

-- A word of a shell command.
local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- What the broker has; empty if it is another user's, whose jobs are not within a job.
local function inherited()
    local pipe = assert(io.popen(flux .. " getattr broker.pid 2> /dev/null", "r"))
    local pid = pipe:read("*l")
    pipe:close()
    local file = pid and io.open("/proc/" .. pid .. "/environ", "rb")
    local found = {}
    if file then
        for name, value in file:read("*a"):gmatch("([%w_]+)=(%Z*)") do
            if is_ours(name) then
                found[name] = value
            end
        end
        file:close()
    end
    if found.FI_CXI_COLL_JOB_ID then
        found.FI_CXI_COLL_JOB_STEP_ID = step
    end
    return found
end

-- What the node's record of the job says; empty if it has none.
local function recorded(job)
    local command = string.format("CXI_CONFIG=%s %s job env --job %s --step %s 2> /dev/null", config, cxi, quoted(job), quoted(step))
    local pipe = assert(io.popen(command, "r"))
    local found = {}
    for line in pipe:lines() do
        local name, value = line:match("^export ([%w_]+)=(.*)$")
        if name then
            found[name] = value:gsub("'", "")
        end
    end
    pipe:close()
    return found
end

local function set()
    local job = shell.getenv("FLUX_JOB_ID"):gsub("ƒ", "f")
    step = shell.getenv("FLUX_JOB_ID_PATH"):gsub("ƒ", "f"):gsub("^/", "")
    -- What the user's shell happens to have is of another node.
    for name in pairs(shell.getenv()) do
        if is_ours(name) then
            shell.unsetenv(name)
        end
    end
    environment = inherited()
    if not environment.SLINGSHOT_VNIS then
        environment = recorded(job)
    end
    for name, value in pairs(environment) do
        shell.setenv(name, value)
    end
    local less = environment.SLINGSHOT_CXI_SCALED_BACK
    if less then
        shell.log("slingshot: less than the job asks for of " .. less)
    end
end

-- Frees the multicast trees that the job's processes left, so that the next job has them. The token goes through a pipe,
-- because other users see command lines.
local function free()
    if shell.info.rank ~= 0 or not environment.FI_CXI_COLL_JOB_ID then
        return
    end
    local script = assert(io.popen("sh > /dev/null", "w"))
    for name, value in pairs(environment) do
        script:write("export ", name, "=", quoted(value), "\n")
    end
    script:write("export CXI_FABRIC_MANAGER_DEADLINE=4s\n", cxi, " collectives step-end ", quoted(step), "\n")
    script:close()
end

plugin.register {
    name = "slingshot",
    handlers = {
        { topic = "shell.post-init", fn = set },
        { topic = "shell.exit", fn = free },
    },
}
